//! The outcome of confining a process, as data.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// One of the walls behind the sandbox; it has the same name in reports and in the API.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Wall {
    /// The process is not root, and if it was given its own user, nobody else has that user.
    User,
    /// It has no capability and cannot get any.
    Capabilities,
    /// Programs that it starts gain no rights from their files (`PR_SET_NO_NEW_PRIVS`).
    NoNewPrivileges,
    /// It can reach the files that it needs and no others (Landlock).
    Files,
    /// It can make the system calls that it needs and no others (seccomp).
    SystemCalls,
    /// Its use of resources is limited: descriptors, core dumps, priority.
    Bounds,
    /// A control group bounds the memory of the whole process.
    Memory,
    /// A control group bounds the number of its threads and processes.
    Processes,
}

/// A wall that is not in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, derive_more::Display)]
#[display("{wall} ({reason})")]
pub struct MissingWall {
    /// The wall.
    pub wall: Wall,
    /// What the system lacks, or its error.
    pub reason: String,
}

/// The walls of one process. A wall that was not requested is in neither list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The walls in force.
    pub in_force: Vec<Wall>,
    /// The missing walls, and why.
    pub missing: Vec<MissingWall>,
    /// The walls in force that are weaker on this system than elsewhere.
    #[serde(default)]
    pub lower: Vec<MissingWall>,
}

impl Report {
    /// Records a wall that is in force.
    pub fn record_in_force(&mut self, wall: Wall) {
        if !self.in_force.contains(&wall) {
            self.in_force.push(wall);
        }
    }

    /// Records a missing wall.
    pub fn record_missing(&mut self, wall: Wall, reason: impl Display) {
        self.missing.push(MissingWall {
            wall,
            reason: reason.to_string(),
        });
    }

    /// Records a wall that is in force, but weaker than elsewhere.
    pub fn is_lower(&mut self, wall: Wall, reason: impl Display) {
        self.record_in_force(wall);
        self.lower.push(MissingWall {
            wall,
            reason: reason.to_string(),
        });
    }

    /// Records the outcome of setting up a wall.
    pub fn note(&mut self, wall: Wall, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.record_in_force(wall),
            Err(reason) => self.record_missing(wall, reason),
        }
    }

    /// Adds the findings about other walls.
    pub fn merge(&mut self, other: Report) {
        other
            .in_force
            .into_iter()
            .for_each(|wall| self.record_in_force(wall));
        self.missing.extend(other.missing);
        self.lower.extend(other.lower);
    }

    /// Records that a wall is missing, whatever was recorded about it: the caller knows better.
    pub fn overrule(&mut self, missing: MissingWall) {
        self.in_force.retain(|wall| *wall != missing.wall);
        self.missing.retain(|other| other.wall != missing.wall);
        self.missing.push(missing);
    }

    /// Returns the missing walls as one phrase; empty if none is missing.
    #[must_use]
    pub fn missing_in_words(&self) -> String {
        let missing: Vec<String> = self.missing.iter().map(MissingWall::to_string).collect();
        missing.join(", ")
    }
}
