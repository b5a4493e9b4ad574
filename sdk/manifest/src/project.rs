//! `plugin.toml`: the file in which an author declares a plugin; it is the same for every language.
//!
//! It has the contents of the manifest in a shorter form, and in addition what only the build needs: the language, and
//! which function in the sources answers which route.

mod mistakes;

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;

use crate::manifest::{INTERFACE, Manifest, Need};
use crate::{Action, Language, Pattern, PluginMetadata, ProjectFile, ScheduleError};

use mistakes::Mistakes;
pub use mistakes::{ProjectError, ProjectErrors};

/// A plugin as its author declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The manifest that the component will contain.
    pub manifest: Manifest,
    /// The function that answers each route, in the order of the manifest's routes.
    pub handlers: Vec<String>,
    /// The provider of each action, in the order of the manifest's `provides`; none for
    /// [`Action::ActionProvider`](crate::Action::ActionProvider), which comes last.
    pub providers: Vec<String>,
    /// The function that performs each of the plugin's own actions, in the order of the manifest's `actions`.
    pub action_functions: Vec<String>,
    /// The file next to `plugin.toml` that describes the routes, a part of an OpenAPI 3.1 document in JSON.
    pub openapi: Option<String>,
    /// How the component is built.
    pub build: Build,
}

/// How a component is built from its sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    /// The language of the sources.
    pub language: Language,
    /// The main source file, next to `plugin.toml`; each language has a default. With [`Language::Component`], the
    /// component.
    pub source: Option<String>,
    /// The shell command that builds a component, run in the folder of `plugin.toml`.
    pub command: Option<String>,
}

impl Project {
    /// The name of the file.
    pub const FILE: &'static str = "plugin.toml";

    /// Parses and checks the text of a `plugin.toml`.
    ///
    /// # Errors
    /// Everything because of which it is not valid, or because of which no device would accept the manifest. A text that
    /// is not TOML has one error.
    pub fn parse(text: &str) -> Result<Project, ProjectErrors> {
        let mut mistakes = Mistakes::new(text);
        let (file, errors) = ProjectFile::parse_most(text);
        for error in errors {
            mistakes.add_at(error.offset, error.message);
        }
        let Some(file) = file else {
            return Err(mistakes.into_errors());
        };
        // What is left out may be the reason for what does not fit together.
        let is_whole = mistakes.errors.is_empty();
        let (routes, handlers) = mistakes.routes(file.routes);
        let limits = mistakes.limits(file.limits);
        let needs = file.capabilities.into_iter().map(|(name, reason)| Need {
            name: name.into_inner().0,
            reason: reason.into_inner(),
        });
        let provides = file.provides.into_iter();
        let (mut provides, providers): (Vec<Action>, _) = provides
            .map(|(action, provider)| (action.into_inner(), provider.into_inner()))
            .unzip();
        let actions = file.actions.into_iter();
        let actions: BTreeMap<String, String> = actions
            .map(|(name, function)| (name.into_inner(), function.into_inner()))
            .collect();
        let (actions, action_functions): (BTreeSet<String>, Vec<String>) =
            actions.into_iter().unzip();
        // It results from the table of actions. All others come first, each with its provider.
        if !actions.is_empty() {
            provides.push(Action::ActionProvider);
        }
        let mut schedules = BTreeMap::new();
        for (name, schedule) in file.schedules {
            let parsed: Result<_, ScheduleError> = schedule.get_ref().parse();
            if let Some(schedule) = mistakes.valid_at(schedule.span().start, parsed) {
                schedules.insert(name.into_inner(), schedule);
            }
        }
        let base_path = file.base_path.and_then(|path| {
            let parsed = Pattern::parse(path.get_ref());
            mistakes.valid_at(path.span().start, parsed)
        });
        let manifest = Manifest {
            name: file.name.into_inner(),
            version: file.version.into_inner(),
            interface: file.interface.map_or(INTERFACE, Spanned::into_inner),
            about: PluginMetadata {
                description: file.description.map(Spanned::into_inner),
                vendor: file.vendor.map(Spanned::into_inner),
                licence: file.licence.map(Spanned::into_inner),
                homepage: file.homepage.map(Spanned::into_inner),
            },
            routes,
            base_path,
            provides,
            events: file.events.into_iter().map(Spanned::into_inner).collect(),
            schedules,
            actions,
            capabilities: needs.collect(),
            boards: file.boards.into_iter().map(Spanned::into_inner).collect(),
            limits,
            openapi: None,
        };
        let problems = if mistakes.errors.is_empty() {
            manifest.problems()
        } else {
            manifest.problems_of_parts()
        };
        for problem in problems {
            mistakes.add(&problem);
        }
        let language = file
            .build
            .language
            .map_or_else(Language::default, Spanned::into_inner);
        let command = file.build.command.map(Spanned::into_inner);
        for (key, is_there) in [
            ("command", command.is_some()),
            ("base_path", manifest.base_path.is_some()),
        ] {
            if is_there && is_whole && language != Language::Component {
                mistakes.add(&format!(
                    "`{key}` is for components of other toolchains, and `language` is `{language}`: set it to `component`, or \
                     leave `{key}` out"
                ));
            }
        }
        for problem in manifest.reserved_routes().chain(manifest.stock_routes()) {
            mistakes.add(&problem);
        }
        if !mistakes.errors.is_empty() {
            return Err(mistakes.into_errors());
        }
        Ok(Project {
            manifest,
            handlers,
            providers,
            action_functions,
            openapi: file.openapi.map(Spanned::into_inner),
            build: Build {
                language,
                source: file.build.source,
                command,
            },
        })
    }
}

impl Manifest {
    /// Returns an error for each route of the supervisor's own, which every device refuses although the manifest is valid.
    pub fn reserved_routes(&self) -> impl Iterator<Item = String> {
        self.routes.iter().filter_map(|route| {
            let (method, path) = crate::core_route(&route.method, &route.pattern)?;
            Some(format!(
                "the route `{route}` is the supervisor's own (`{method} {path}`); choose another path"
            ))
        })
    }
}

#[cfg(test)]
mod tests;
