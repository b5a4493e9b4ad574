//! What came of it, as data.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// One of the walls behind the sandbox, written the same in reports and in the API.
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
    /// The process is no root, and its user is nobody else's where one was asked for.
    User,
    /// It has no capability and can get none.
    Capabilities,
    /// Programs that it would start gain no rights by their files (`PR_SET_NO_NEW_PRIVS`).
    NoNewPrivileges,
    /// It reaches the files that it needs and no others (Landlock).
    Files,
    /// It makes the system calls that it needs and no others (seccomp).
    SystemCalls,
    /// It can use up no more than it may: descriptors, core dumps, priority.
    Bounds,
    /// A control group bounds the memory of the whole process.
    Memory,
    /// A control group bounds the number of its threads and processes.
    Processes,
}

/// A wall that does not stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, derive_more::Display)]
#[display("{wall} ({reason})")]
pub struct MissingWall {
    /// Which.
    pub wall: Wall,
    /// What the system lacks, or said.
    pub reason: String,
}

/// The walls of one process. A wall that nobody asked for is in neither list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The walls that stand.
    pub in_force: Vec<Wall>,
    /// The walls that do not, and why.
    pub missing: Vec<MissingWall>,
    /// Of the walls that stand, those that this system has a lower form of.
    #[serde(default)]
    pub lower: Vec<MissingWall>,
}

impl Report {
    /// Notes a wall that stands.
    pub fn holds(&mut self, wall: Wall) {
        if !self.in_force.contains(&wall) {
            self.in_force.push(wall);
        }
    }

    /// Notes a wall that does not stand.
    pub fn lacks(&mut self, wall: Wall, reason: impl Display) {
        self.missing.push(MissingWall {
            wall,
            reason: reason.to_string(),
        });
    }

    /// Notes a wall that stands, though lower than it is elsewhere.
    pub fn is_lower(&mut self, wall: Wall, reason: impl Display) {
        self.holds(wall);
        self.lower.push(MissingWall {
            wall,
            reason: reason.to_string(),
        });
    }

    /// Notes what came of putting up a wall.
    pub fn note(&mut self, wall: Wall, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.holds(wall),
            Err(reason) => self.lacks(wall, reason),
        }
    }

    /// Takes in what was found out of other walls.
    pub fn merge(&mut self, other: Report) {
        other.in_force.into_iter().for_each(|wall| self.holds(wall));
        self.missing.extend(other.missing);
        self.lower.extend(other.lower);
    }

    /// Says that a wall is missing, whatever was noted of it: who knows more knows that it does not stand.
    pub fn overrule(&mut self, missing: MissingWall) {
        self.in_force.retain(|wall| *wall != missing.wall);
        self.missing.retain(|other| other.wall != missing.wall);
        self.missing.push(missing);
    }

    /// The missing walls as one phrase; empty where none is missing.
    #[must_use]
    pub fn missing_in_words(&self) -> String {
        let missing: Vec<String> = self.missing.iter().map(MissingWall::to_string).collect();
        missing.join(", ")
    }
}
