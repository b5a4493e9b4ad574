//! `plugin.toml`: the file in which an author declares a plugin; it is the same for every language.
//!
//! It has the contents of the manifest in a shorter form, and in addition what only the build needs: the language, and
//! which function in the sources answers which route.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr as _;

use serde::Deserialize;
use toml::Spanned;

use crate::form_error::line_and_column;
use crate::manifest::{INTERFACE, INVALID, Manifest, Need};
use crate::{
    Action, LimitError, Pattern, PluginMetadata, ProjectFile, Route, ScheduleError, WrittenLimits,
};

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

/// A language that plugins are written in.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Language {
    /// Rust, with the crate `supervisor-sdk`.
    #[default]
    Rust,
    /// C.
    C,
    /// Go.
    Go,
    /// JavaScript.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// Python.
    Python,
    /// None: another toolchain builds the component.
    Component,
}

/// The reason why a `plugin.toml` cannot be used, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectError {
    /// Line and column, counted from 1; `None` if the problem is what is missing.
    place: Option<(usize, usize)>,
    message: String,
}

impl fmt::Display for ProjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Project::FILE)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ProjectError {}

impl ProjectError {
    /// Creates the error about the place `offset` of a text.
    fn at(text: &str, offset: usize, message: impl fmt::Display) -> ProjectError {
        ProjectError {
            place: Some(line_and_column(text, offset)),
            message: message.to_string(),
        }
    }

    /// Creates the error about something whose place only its message names: the first text between backticks that
    /// begins a line, as keys do.
    fn about(text: &str, message: &str) -> ProjectError {
        let mut names = message.split('`').skip(1).step_by(2);
        let offset = names.find_map(|name| offset_of_key(text, name));
        ProjectError {
            place: offset.map(|offset| line_and_column(text, offset)),
            message: message.to_owned(),
        }
    }
}

/// Returns the place of a key: of a bare one, one in quotation marks, or a table.
fn offset_of_key(text: &str, key: &str) -> Option<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let written = line.trim_start();
        let after = ["[", "\"", "'", ""].iter().find_map(|opening| {
            let rest = written.strip_prefix(opening)?;
            rest.strip_prefix(key)
        });
        let ends = |rest: &str| {
            let next = rest.chars().next();
            next.is_none_or(|char| "]\"'.= \t".contains(char))
        };
        if !key.is_empty() && after.is_some_and(ends) {
            return Some(start + line.len() - written.len());
        }
        start += line.len();
    }
    None
}

impl Project {
    /// The name of the file.
    pub const FILE: &'static str = "plugin.toml";

    /// Parses and checks the text of a `plugin.toml`.
    ///
    /// # Errors
    /// If it is not valid, or if no device would accept the manifest.
    pub fn parse(text: &str) -> Result<Project, ProjectError> {
        let file = ProjectFile::parse(text)
            .map_err(|error| ProjectError::at(text, error.offset, error.message))?;
        let mut routes = Vec::new();
        let mut handlers = Vec::new();
        for (route, handler) in file.routes {
            if handler.get_ref().trim().is_empty() {
                let route = route.get_ref();
                let message = format!(
                    "the route `{route}` has no handler: name the function that answers it"
                );
                return Err(ProjectError::at(text, handler.span().start, message));
            }
            let place = route.span().start;
            let route = Route::parse(route.get_ref());
            routes.push(route.map_err(|error| ProjectError::at(text, place, error))?);
            handlers.push(handler.into_inner());
        }
        let mut limits = WrittenLimits::default();
        for (key, value) in file.limits {
            if let Err(error) = limits.set(key.get_ref(), *value.get_ref()) {
                let place = match error {
                    LimitError::Range { .. } => value.span().start,
                    LimitError::Unknown { .. } => key.span().start,
                };
                return Err(ProjectError::at(text, place, error));
            }
        }
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
            let place = schedule.span().start;
            let schedule = schedule.get_ref().parse();
            let schedule =
                schedule.map_err(|error: ScheduleError| ProjectError::at(text, place, error))?;
            schedules.insert(name.into_inner(), schedule);
        }
        let base_path = file.base_path.map(|path| {
            Pattern::parse(path.get_ref())
                .map_err(|error| ProjectError::at(text, path.span().start, error))
        });
        let base_path = base_path.transpose()?;
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
        manifest.check().map_err(|error| {
            let message = error.to_string();
            let message = message.strip_prefix(INVALID).unwrap_or(&message);
            ProjectError::about(text, message)
        })?;
        let language = file
            .build
            .language
            .map_or_else(Language::default, Spanned::into_inner);
        let command = file.build.command.map(Spanned::into_inner);
        for (key, is_there) in [
            ("command", command.is_some()),
            ("base_path", manifest.base_path.is_some()),
        ] {
            if is_there && language != Language::Component {
                let message = format!(
                    "`{key}` is for components of other toolchains, and `language` is `{language}`: set it to `component`, or \
                     leave `{key}` out"
                );
                return Err(ProjectError::about(text, &message));
            }
        }
        if let Some(problem) = manifest.reserved_route().or_else(|| manifest.stock_route()) {
            return Err(ProjectError::about(text, &problem));
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
    /// Returns the error for routes of the supervisor's own, which every device refuses although the manifest is valid.
    #[must_use]
    pub fn reserved_route(&self) -> Option<String> {
        self.routes.iter().find_map(|route| {
            let (method, path) = crate::core_route(&route.method, &route.pattern)?;
            Some(format!(
                "the route `{route}` is the supervisor's own (`{method} {path}`); choose another path"
            ))
        })
    }
}

impl Language {
    /// Finds a language by its name or by the extension of its files.
    ///
    /// # Errors
    /// The names of all languages.
    pub fn find(name: &str) -> Result<Language, String> {
        let name = name.to_ascii_lowercase();
        let short = match name.as_str() {
            "rs" => Language::Rust,
            "js" => Language::JavaScript,
            "ts" => Language::TypeScript,
            "py" => Language::Python,
            "golang" => Language::Go,
            name => {
                return Language::from_str(name).map_err(|_| {
                    format!(
                        "there is no language `{name}`; choose rust, c, go, javascript, typescript or python, or give \
                         what another toolchain has built by `--component FILE`"
                    )
                });
            }
        };
        Ok(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAILS: &str = r#"
name = "acme-rails"
version = "0.1.0"
description = "Shows the board's power rails"
license = "MIT"

[build]
language = "python"

[capabilities]
store = "keeps the counters"

[routes]
"GET /v3/rails/:name" = "rail"
"DELETE /v3/rails/:name" = "reset"

[provides]
identify = "blink"

[limits]
memory_mib = 32
"#;

    #[test]
    fn a_project_stands_for_a_manifest_and_says_what_answers() {
        let project = Project::parse(RAILS).unwrap();
        assert_eq!(project.build.language, Language::Python);
        assert_eq!(project.handlers, ["reset", "rail"]);
        assert_eq!(project.providers, ["blink"]);
        let text = project.manifest.to_toml().unwrap();
        assert_eq!(Manifest::parse(&text).unwrap(), project.manifest, "{text}");
        assert!(text.contains("licence = \"MIT\""), "{text}");
    }

    #[test]
    fn each_action_of_a_plugins_own_has_its_function() {
        let text = format!("{RAILS}[actions]\nset = \"set_rail\"\nall-off = \"reset\"\n");
        let project = Project::parse(&text).unwrap();
        let actions: Vec<_> = project.manifest.actions.iter().collect();
        assert_eq!(actions, ["all-off", "set"]);
        assert_eq!(project.action_functions, ["reset", "set_rail"]);
        assert_eq!(project.providers, ["blink"]);
        let expected = [Action::Identify, Action::ActionProvider];
        assert_eq!(project.manifest.provides, expected);
    }

    #[test]
    fn a_project_that_no_device_would_take_is_refused_in_words() {
        for (from, to, expected) in [
            ("GET /v3/rails/:name", "GET", "`GET` is not a route"),
            ("GET /v3", "FETCH /v3", "its method is `FETCH`, but must be"),
            (
                "GET /v3/rails/:name",
                "GET /v3/plugins",
                "the supervisor's own (`GET /v3/plugins`)",
            ),
            (
                "GET /v3/rails/:name",
                "GET /v2/rails/:name",
                "the route `GET /v2/rails/:name` is refused: only stock plugins answer below `/v1` and `/v2`",
            ),
            (
                "DELETE /v3/rails/:name",
                "GET /v3/rails/:id",
                "duplicate route `GET /v3/rails/:name`",
            ),
            ("= \"rail\"", "= \"\"", "has no handler"),
            (
                "store =",
                "stor =",
                "plugin.toml:11:1: `stor` is not known here; choose one of `device`, ",
            ),
            (
                "store =",
                "update-lock-force =",
                "plugin.toml:11:1: only a policy gives `update-lock-force`: leave it out here",
            ),
            (
                "keeps the counters",
                "",
                "the reason for the capability `store`",
            ),
            ("memory_mib = 32", "memory_mib = 33", "`memory_mib` is 33"),
            (
                "memory_mib = 32",
                "memory = 3",
                "there is no limit `memory`",
            ),
            ("\"acme-rails\"", "\"Acme_R\"", "lower-case letters"),
            (
                "identify =",
                "identity =",
                "plugin.toml:18:1: `identity` is not known here",
            ),
            (
                "identify =",
                "events =",
                "asks for none: name them in `events`",
            ),
            (
                "[provides]",
                "[schedules]\npoll = \"every 5m\"\n[provides]",
                "`provides` does not contain `events`",
            ),
            (
                "[provides]",
                "[schedules]\npoll = \"hourly\"\n[provides]",
                "`hourly` is not a schedule",
            ),
            (
                "\"python\"",
                "\"cobol\"",
                "plugin.toml:8:12: `cobol` is not known here",
            ),
        ] {
            let text = RAILS.replace(from, to);
            assert_ne!(text, RAILS);
            let error = Project::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn an_error_is_one_line_that_begins_with_its_place() {
        for (from, to, expected) in [
            (
                "name =",
                "nme =",
                "2:1: there is no key `nme` here; the keys are `name`, `version`, ",
            ),
            (
                "language =",
                "lang =",
                "8:1: there is no key `lang` here; the keys are `language`, `source`, `command`",
            ),
            ("name = \"acme-rails\"\n", "", ": `name` is missing"),
            (
                "\"acme-rails\"",
                "5",
                "2:8: a string is expected, but this is the number `5`",
            ),
            ("\"acme-rails\"", "acme", ": "),
            (
                "[build]\nlanguage = \"python\"",
                "build = 5",
                ": a table is expected, but this is the number `5`",
            ),
            (
                "license",
                "boards = \"acme\"\nlicense",
                "5:10: a list is expected, but this is the text \"acme\"",
            ),
            (
                "= 32",
                "= -1",
                "21:14: a whole number of at most 32 bits is expected, but this is the number `-1`",
            ),
            (
                "= 32",
                "= 33",
                "21:14: `memory_mib` is 33, but must be 1 to 32",
            ),
            ("memory_mib", "memory", "21:1: there is no limit `memory`"),
            (
                "\"GET /v3/rails/:name\" = \"rail\"",
                "\"GET /v3/rails/:name\" = \"\"",
                "14:25: the route `GET /v3/rails/:name` has no handler",
            ),
            ("GET /v3/rails/:name", "GET", "14:1: `GET` is not a route"),
            (
                "GET /v3/rails",
                "GET /v2/rails",
                "14:1: the route `GET /v2/rails/:name` is refused",
            ),
            (
                "keeps the counters",
                "",
                "11:1: the reason for the capability `store` must have 1 to 512 bytes, and has 0",
            ),
            (
                "\"acme-rails\"",
                "\"Acme\"",
                "2:1: `name` must be at most 63 lower-case letters",
            ),
            (
                "[provides]",
                "[schedules]\npoll = \"hourly\"\n[provides]",
                "18:8: `hourly` is not a schedule",
            ),
            (
                "[provides]",
                "[schedules]\n\"A\" = \"every 5m\"\n[provides]",
                "18:1: the schedule `A` must have a name",
            ),
            (
                "[build]\nlanguage = \"python\"",
                "[build]\nlanguage = \"python\"\ncommand = \"make\"",
                "9:1: `command` is for components",
            ),
        ] {
            let text = RAILS.replace(from, to);
            assert_ne!(text, RAILS);
            let error = Project::parse(&text).unwrap_err();
            let text = error.to_string();
            let place_and_text = text.strip_prefix("plugin.toml:").unwrap();
            assert!(place_and_text.contains(expected), "{to}: {text}");
            assert!(
                expected.starts_with(':') || place_and_text.starts_with(expected),
                "{to}: {text}"
            );
            assert!(std::error::Error::source(&error).is_none());
            for word in ["struct", "sequence", "variant", "Spanned", "\n"] {
                assert!(!text.contains(word), "{to}: {text}");
            }
        }
        // Nothing in the file is the place of what it lacks.
        let error = Project::parse("name = \"a\"\nversion = \"1.0.0\"\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "plugin.toml: it has no routes and provides nothing: declare a route, an event or an action"
        );
    }

    #[test]
    fn languages_are_found_by_name_and_ending() {
        for (name, expected) in [
            ("rust", Language::Rust),
            ("JS", Language::JavaScript),
            ("ts", Language::TypeScript),
            ("python", Language::Python),
        ] {
            assert_eq!(Language::find(name), Ok(expected));
        }
        assert!(Language::find("cobol").unwrap_err().contains("python"));
    }
}
