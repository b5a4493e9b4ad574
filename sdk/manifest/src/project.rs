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
            let errors = Project::parse(&text).unwrap_err();
            assert_eq!(errors.iter().count(), 1, "{errors}");
            let text = errors.to_string();
            let place_and_text = text.strip_prefix("plugin.toml:").unwrap();
            assert!(place_and_text.contains(expected), "{to}: {text}");
            assert!(
                expected.starts_with(':') || place_and_text.starts_with(expected),
                "{to}: {text}"
            );
            assert!(std::error::Error::source(&errors).is_none());
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
    fn all_mistakes_are_reported_in_the_order_of_the_file() {
        let text = r#"
name = "Acme"
version = "0.1"
homepage = "acme.example"

[build]
language = "python"
command = "make"

[capabilities]
stor = "counts"
led = ""

[routes]
"GET" = "a"
"GET /v3/rails" = ""
"GET /v3/plugins" = "b"
"GET /ping" = "c"
"GET /v2/rails" = "d"

[schedules]
poll = "hourly"

[limits]
memory = 3
memory_mib = 33
"#;
        let errors = Project::parse(text).unwrap_err();
        let shown = errors.to_string();
        for (line, expected) in shown.lines().zip([
            "plugin.toml:2:1: `name` must be at most 63",
            "plugin.toml:3:11: ",
            "plugin.toml:4:1: `homepage` must begin with",
            "plugin.toml:11:1: `stor` is not known here",
            "plugin.toml:12:1: the reason for the capability `led`",
            "plugin.toml:15:1: `GET` is not a route",
            "plugin.toml:16:19: the route `GET /v3/rails` has no handler",
            "plugin.toml:17:1: the route `GET /v3/plugins` is the supervisor's own",
            "plugin.toml:18:1: the route `GET /ping` is the supervisor's own",
            "plugin.toml:19:1: the route `GET /v2/rails` is refused",
            "plugin.toml:22:8: `hourly` is not a schedule",
            "plugin.toml:25:1: there is no limit `memory`",
            "plugin.toml:26:14: `memory_mib` is 33",
        ]) {
            assert!(line.starts_with(expected), "{line} and not {expected}");
        }
        // That `command` and the language do not fit together is not checked before.
        assert_eq!(errors.iter().count(), 13, "{shown}");
    }
}
