//! The rules for what a manifest contains, beyond the form of its text.

use std::fmt;

use super::{COUNT, Manifest, ManifestError, NAME, SCHEDULES, TEXT, invalid};
use crate::{Action, EventKind};

impl Manifest {
    /// Checks what the types do not guarantee: lengths, numbers, and that there are no duplicates.
    ///
    /// # Errors
    /// The first thing that a device would refuse.
    pub fn check(&self) -> Result<(), ManifestError> {
        check_name(&self.name).map_err(invalid)?;
        self.check_counts()?;
        self.about.check().map_err(invalid)?;
        for (index, route) in self.routes.iter().enumerate() {
            let mut before = self.routes.iter().take(index);
            if let Some(other) = before.find(|other| other.is_the_same_as(route)) {
                return Err(invalid(format_args!(
                    "duplicate route `{route}`: it matches the same paths as `{other}`"
                )));
            }
        }
        self.check_base_path().map_err(invalid)?;
        if self.routes.is_empty() && self.provides.is_empty() {
            return Err(invalid(
                "it has no routes and provides nothing: declare a route, an event or an action",
            ));
        }
        self.check_events().map_err(invalid)?;
        self.check_actions().map_err(invalid)?;
        for (index, need) in self.capabilities.iter().enumerate() {
            check_text(
                format_args!("the reason for the capability `{}`", need.name),
                &need.reason,
            )
            .map_err(invalid)?;
            let mut before = self.capabilities.iter().take(index);
            if before.any(|other| other.name == need.name) {
                return Err(invalid(format_args!(
                    "duplicate capability `{}`",
                    need.name
                )));
            }
        }
        for board in &self.boards {
            check_text("the name of a board", board).map_err(invalid)?;
        }
        if self.version.to_string().len() > TEXT {
            return Err(invalid(format_args!(
                "`version` has more than {TEXT} bytes"
            )));
        }
        Ok(self.limits.check()?)
    }

    fn check_base_path(&self) -> Result<(), String> {
        let Some(base) = &self.base_path else {
            return Ok(());
        };
        if base.names().next().is_some() {
            return Err(format!(
                "`base_path` is `{base}`, but must not contain a `:name`"
            ));
        }
        let mut routes = self.routes.iter();
        match routes.find(|route| !base.covers(&route.pattern, true)) {
            Some(route) => Err(format!(
                "the route `{route}` does not begin with `base_path`, which is `{base}`"
            )),
            None => Ok(()),
        }
    }

    fn check_events(&self) -> Result<(), String> {
        if self.events.contains(&EventKind::Schedule) {
            return Err("`events` contains `schedule`: name the times in `schedules`".to_owned());
        }
        if self.schedules.len() > SCHEDULES {
            let count = self.schedules.len();
            return Err(format!(
                "`schedules` has {count} entries, more than {SCHEDULES}"
            ));
        }
        for name in self.schedules.keys() {
            check_schedule_name(name)?;
        }
        let provides = self.provides.contains(&Action::Events);
        let asks = !self.event_kinds().is_empty();
        match (asks, provides) {
            (true, false) => {
                Err("it asks for events, but `provides` does not contain `events`: in plugin.toml, `events = \"FUNCTION\"` in \
                     `[provides]` names the function that is called".to_owned())
            }
            (false, true) => Err(
                "it provides `events`, but asks for none: name them in `events` or `schedules`"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn check_actions(&self) -> Result<(), String> {
        for name in &self.actions {
            check_action_name(name)?;
        }
        let provides = self.provides.contains(&Action::ActionProvider);
        if provides == self.actions.is_empty() {
            return Err(
                "it names `actions` of its own if and only if `provides` contains `action-provider`"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), ManifestError> {
        for (what, count) in [
            ("routes", self.routes.len()),
            ("capabilities", self.capabilities.len()),
            ("boards", self.boards.len()),
            ("provides", self.provides.len()),
            ("actions", self.actions.len()),
        ] {
            if count > COUNT {
                return Err(invalid(format_args!(
                    "`{what}` has {count} entries, more than {COUNT}"
                )));
            }
        }
        Ok(())
    }
}

/// Checks the name of a plugin.
///
/// # Errors
/// The rule for names.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME || name.starts_with('-') || !name.bytes().all(fits) {
        return Err(
            "`name` must be at most 63 lower-case letters, digits and `-`, and begin with a letter or digit",
        );
    }
    Ok(())
}

/// Checks the name of a schedule.
///
/// # Errors
/// The rule for names.
pub fn check_schedule_name(name: &str) -> Result<(), String> {
    check_name_of("schedule", name)
}

/// Checks the name of a plugin's own action.
///
/// # Errors
/// The rule for names.
pub fn check_action_name(name: &str) -> Result<(), String> {
    check_name_of("action", name)
}

fn check_name_of(what: &str, name: &str) -> Result<(), String> {
    check_name(name).map_err(|_| {
        let name: String = name.chars().take(100).collect();
        format!(
            "the {what} `{name}` must have a name of at most 63 lower-case letters, digits and `-`, that begins with a letter or digit"
        )
    })
}

/// Checks the length of a text, for example of a reason; `what` says which text it is.
///
/// # Errors
/// If it is empty or too long.
pub fn check_text(what: impl fmt::Display, text: &str) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > TEXT {
        let length = text.len();
        return Err(format!(
            "{what} must have 1 to {TEXT} bytes, and has {length}"
        ));
    }
    Ok(())
}
