//! The rules for what a manifest contains, beyond the form of its text.

use super::{COUNT, Manifest, ManifestError, SCHEDULES, invalid};
use crate::bounded_text::{TEXT, check_text};
use crate::name::{check_action_name, check_name, check_schedule_name};
use crate::{Action, EventKind};

impl Manifest {
    /// Checks what the types do not guarantee: lengths, numbers, and that there are no duplicates.
    ///
    /// # Errors
    /// The first thing that a device would refuse.
    pub fn check(&self) -> Result<(), ManifestError> {
        if let Some(problem) = self.problems().into_iter().next() {
            return Err(invalid(problem));
        }
        Ok(self.limits.check()?)
    }

    /// Returns everything that a device would refuse in it, except for limits. What does not fit together is only
    /// included if each part is valid, because it may be an effect of a part that is not.
    pub(crate) fn problems(&self) -> Vec<String> {
        let problems = self.problems_of_parts();
        if problems.is_empty() {
            return self.problems_of_whole();
        }
        problems
    }

    /// Returns what is wrong with the parts of the manifest.
    pub(crate) fn problems_of_parts(&self) -> Vec<String> {
        let name = check_name(&self.name).err();
        let mut problems: Vec<String> = name.map(str::to_owned).into_iter().collect();
        let too_many = self.problems_of_counts();
        if !too_many.is_empty() {
            // Below, each part is compared with those before it, which takes long for very many.
            problems.extend(too_many);
            return problems;
        }
        problems.extend(self.about.problems());
        for (index, route) in self.routes.iter().enumerate() {
            let mut before = self.routes.iter().take(index);
            if let Some(other) = before.find(|other| other.is_the_same_as(route)) {
                problems.push(format!(
                    "duplicate route `{route}`: it matches the same paths as `{other}`"
                ));
            }
        }
        problems.extend(self.problems_of_base_path());
        if self.events.contains(&EventKind::Schedule) {
            problems.push("`events` contains `schedule`: name the times in `schedules`".to_owned());
        }
        let schedules = self.schedules.keys();
        problems.extend(schedules.filter_map(|name| check_schedule_name(name).err()));
        let actions = self.actions.iter();
        problems.extend(actions.filter_map(|name| check_action_name(name).err()));
        for (index, need) in self.capabilities.iter().enumerate() {
            let what = format_args!("the reason for the capability `{}`", need.name);
            problems.extend(check_text(what, &need.reason).err());
            let mut before = self.capabilities.iter().take(index);
            if before.any(|other| other.name == need.name) {
                problems.push(format!("duplicate capability `{}`", need.name));
            }
        }
        let boards = self.boards.iter();
        problems.extend(boards.filter_map(|board| check_text("the name of a board", board).err()));
        if self.version.to_string().len() > TEXT {
            problems.push(format!("`version` has more than {TEXT} bytes"));
        }
        problems
    }

    /// Returns what does not fit together.
    pub(crate) fn problems_of_whole(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.routes.is_empty() && self.provides.is_empty() {
            problems.push(
                "it has no routes and provides nothing: declare a route, an event or an action"
                    .to_owned(),
            );
        }
        let provides = self.provides.contains(&Action::Events);
        let asks = !self.event_kinds().is_empty();
        match (asks, provides) {
            (true, false) => problems.push(
                "it asks for events, but `provides` does not contain `events`: in plugin.toml, `events = \"FUNCTION\"` in \
                 `[provides]` names the function that is called"
                    .to_owned(),
            ),
            (false, true) => problems.push(
                "it provides `events`, but asks for none: name them in `events` or `schedules`"
                    .to_owned(),
            ),
            _ => {}
        }
        let provides = self.provides.contains(&Action::ActionProvider);
        if provides == self.actions.is_empty() {
            problems.push(
                "it names `actions` of its own if and only if `provides` contains `action-provider`"
                    .to_owned(),
            );
        }
        problems
    }

    fn problems_of_base_path(&self) -> Vec<String> {
        let Some(base) = &self.base_path else {
            return Vec::new();
        };
        if base.names().next().is_some() {
            return vec![format!(
                "`base_path` is `{base}`, but must not contain a `:name`"
            )];
        }
        let routes = self.routes.iter();
        let outside = routes.filter(|route| !base.covers(&route.pattern, true));
        outside
            .map(|route| {
                format!("the route `{route}` does not begin with `base_path`, which is `{base}`")
            })
            .collect()
    }

    fn problems_of_counts(&self) -> Vec<String> {
        let counts = [
            ("routes", self.routes.len(), COUNT),
            ("capabilities", self.capabilities.len(), COUNT),
            ("boards", self.boards.len(), COUNT),
            ("provides", self.provides.len(), COUNT),
            ("actions", self.actions.len(), COUNT),
            ("schedules", self.schedules.len(), SCHEDULES),
        ];
        let too_many = counts.into_iter().filter(|(_, count, most)| count > most);
        too_many
            .map(|(what, count, most)| format!("`{what}` has {count} entries, more than {most}"))
            .collect()
    }
}
