//! `plugin.toml`: the file in which an author declares a plugin; it is the same for every language.
//!
//! It has the contents of the manifest in a shorter form, and in addition what only the build needs: the language, and
//! which function in the sources answers which route.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use serde::Deserialize;
use toml::Spanned;

use crate::manifest::{INTERFACE, Manifest, ManifestError, Need};
use crate::{Action, Pattern, PluginMetadata, ProjectFile, Route, ScheduleError, WrittenLimits};

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

/// The reason why a `plugin.toml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// It is not valid TOML, or not of the expected form.
    #[error("`plugin.toml` is invalid: {0}")]
    Parse(#[source] Box<toml::de::Error>),
    /// Something in it is not valid.
    #[error("`plugin.toml` is invalid: {0}")]
    Invalid(String),
    /// No device would accept the resulting manifest.
    #[error("no device accepts what `plugin.toml` declares: {0}")]
    Manifest(String),
}

impl Project {
    /// The name of the file.
    pub const FILE: &'static str = "plugin.toml";

    /// Parses and checks the text of a `plugin.toml`.
    ///
    /// # Errors
    /// If it is not valid, or if no device would accept the manifest.
    pub fn parse(text: &str) -> Result<Project, ProjectError> {
        let file =
            ProjectFile::parse(text).map_err(|error| ProjectError::Parse(Box::new(error)))?;
        let mut routes = Vec::new();
        let mut handlers = Vec::new();
        for (route, handler) in file.routes {
            let (route, handler) = (route.into_inner(), handler.into_inner());
            if handler.trim().is_empty() {
                return Err(ProjectError::Invalid(format!(
                    "the route `{route}` has no handler: name the function that answers it"
                )));
            }
            routes.push(Route::parse(&route).map_err(ProjectError::Invalid)?);
            handlers.push(handler);
        }
        let mut limits = WrittenLimits::default();
        for (key, value) in file.limits {
            let set = limits.set(key.get_ref(), *value.get_ref());
            set.map_err(|error| ProjectError::Invalid(error.to_string()))?;
        }
        let needs = file.capabilities.into_iter().map(|(name, reason)| Need {
            name: name.into_inner(),
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
            let schedule = schedule.get_ref().parse();
            let schedule = schedule
                .map_err(|error: ScheduleError| ProjectError::Invalid(error.to_string()))?;
            schedules.insert(name.into_inner(), schedule);
        }
        let base_path = file.base_path.map(|path| Pattern::parse(path.get_ref()));
        let base_path = base_path
            .transpose()
            .map_err(|error| ProjectError::Manifest(error.to_string()))?;
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
        manifest.check().map_err(refused)?;
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
                return Err(ProjectError::Invalid(format!(
                    "`{key}` is for components of other toolchains, and `language` is `{language}`: set it to `component`, or \
                     leave `{key}` out"
                )));
            }
        }
        if let Some(problem) = manifest.reserved_route().or_else(|| manifest.stock_route()) {
            return Err(ProjectError::Manifest(problem));
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

fn refused(error: ManifestError) -> ProjectError {
    match error {
        ManifestError::Parse(error) => ProjectError::Parse(error),
        error => ProjectError::Manifest(error.to_string()),
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
                "unknown variant `stor`, expected one of",
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
            ("identify =", "identity =", "unknown variant `identity`"),
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
            ("\"python\"", "\"cobol\"", "unknown variant `cobol`"),
        ] {
            let text = RAILS.replace(from, to);
            assert_ne!(text, RAILS);
            let error = Project::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
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
