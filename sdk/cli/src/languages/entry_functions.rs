//! What the entry module of a component connects with the supervisor, in the languages in which this tool writes one: the
//! functions that `plugin.toml` names for routes, events and actions, and what provides the typed actions.

use anyhow::{Result, ensure};
use plugin_manifest::{Action, Language, Route};

use super::is_identifier;
use super::typed_actions::{TYPED_ACTIONS, provider_kind};
use crate::project::ProjectFolder;

/// The functions of a plugin by their purposes. Each name can be one in the plugin's language.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EntryFunctions<'a> {
    /// Each with its route.
    pub(super) routes: Vec<(&'a Route, &'a str)>,
    /// The one that is called for events.
    pub(super) watcher: Option<&'a str>,
    /// Each with the name of its action.
    pub(super) actions: Vec<(&'a str, &'a str)>,
    providers: Vec<(Action, &'a str)>,
}

impl<'a> EntryFunctions<'a> {
    /// Reads them from a project. Errors call its `language` by `shown`.
    ///
    /// # Errors
    /// A name cannot be that of a function, or of what provides an action, in the language.
    pub(super) fn read(
        project: &'a ProjectFolder,
        language: Language,
        shown: &str,
    ) -> Result<EntryFunctions<'a>> {
        let function = |name: &'a str, purpose: String| {
            check_identifier(name, language, &purpose, &format!("function in {shown}"))?;
            anyhow::Ok(name)
        };
        let routes = project.routes().map(|(route, handler)| {
            let handler = function(handler, format!("answers `{route}`"))?;
            anyhow::Ok((route, handler))
        });
        let routes = routes.collect::<Result<_>>()?;
        let watcher = project.provider(Action::Events);
        let watcher = watcher.map(|watcher| function(watcher, "provides `events`".to_owned()));
        let watcher = watcher.transpose()?;
        let actions = project.actions().map(|(name, performer)| {
            let performer = function(performer, format!("performs the action `{name}`"))?;
            anyhow::Ok((name, performer))
        });
        let actions = actions.collect::<Result<_>>()?;
        let mut providers = Vec::new();
        for action in TYPED_ACTIONS {
            let Some(provider) = project.provider(action) else {
                continue;
            };
            let kind = format!("{} in {shown}", provider_kind(language, action));
            let purpose = format!("provides `{action}`");
            check_identifier(provider, language, &purpose, &kind)?;
            providers.push((action, provider));
        }
        Ok(EntryFunctions {
            routes,
            watcher,
            actions,
            providers,
        })
    }

    /// Returns what provides a typed action.
    pub(super) fn provider(&self, action: Action) -> Option<&'a str> {
        let mut providers = self.providers.iter();
        providers.find_map(|(provided, provider)| (*provided == action).then_some(*provider))
    }
}

/// Checks that something that `plugin.toml` names can have this name in a language. `purpose` says what it does, and `kind`
/// what it is and in which language: `function in Go`.
///
/// # Errors
/// It cannot.
fn check_identifier(name: &str, language: Language, purpose: &str, kind: &str) -> Result<()> {
    let is_allowed = language != Language::C || name.is_ascii();
    ensure!(
        is_allowed && is_identifier(name, language),
        "`{name}`, which {purpose}, is not the name of a {kind}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLUGIN: &str = "name = \"rails\"\nversion = \"1.0.0\"\n[build]\nlanguage = \"python\"\n\
        [routes]\n\"GET /v3/rails\" = \"show\"\n\"PUT /v3/rails\" = \"set\"\n\
        [schedules]\npoll = \"every 5m\"\n[provides]\nevents = \"watch\"\nidentify = \"blink\"\nos-update = \"Slots\"\n[actions]\nreset = \"reset_all\"\n";

    /// Passes on the functions of a project with this `plugin.toml`, or the error.
    fn check(
        plugin: &str,
        language: (Language, &str),
        check: impl FnOnce(Result<EntryFunctions<'_>>),
    ) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plugin.toml"), plugin).unwrap();
        let project = ProjectFolder::open(folder.path()).unwrap();
        check(EntryFunctions::read(&project, language.0, language.1));
    }

    #[test]
    fn the_functions_of_a_project_are_those_that_it_names_for_each_purpose() {
        check(PLUGIN, (Language::Python, "Python"), |functions| {
            let functions = functions.unwrap();
            let routes = functions.routes.iter();
            let mut routes: Vec<_> = routes
                .map(|(route, name)| format!("{route} {name}"))
                .collect();
            routes.sort();
            assert_eq!(routes, ["GET /v3/rails show", "PUT /v3/rails set"]);
            assert_eq!(functions.watcher, Some("watch"));
            assert_eq!(functions.actions, [("reset", "reset_all")]);
            assert_eq!(functions.provider(Action::Identify), Some("blink"));
            assert_eq!(functions.provider(Action::OsUpdate), Some("Slots"));
            assert_eq!(functions.provider(Action::BootConfig), None);
        });
    }

    #[test]
    fn a_name_that_the_language_does_not_allow_is_refused_with_its_purpose_and_its_kind() {
        for (name, purpose, kind) in [
            ("show", "answers `GET /v3/rails`", "function"),
            ("watch", "provides `events`", "function"),
            ("reset_all", "performs the action `reset`", "function"),
            ("blink", "provides `identify`", "function"),
            ("Slots", "provides `os-update`", "class"),
        ] {
            let plugin = PLUGIN.replace(&format!("\"{name}\""), "\"say hello\"");
            let expected =
                format!("`say hello`, which {purpose}, is not the name of a {kind} in Python");
            check(&plugin, (Language::Python, "Python"), |functions| {
                assert_eq!(functions.unwrap_err().to_string(), expected);
            });
        }
    }

    #[test]
    fn only_c_refuses_letters_beyond_ascii() {
        let plugin = PLUGIN.replace("\"show\"", "\"größe\"");
        check(&plugin, (Language::Python, "Python"), |functions| {
            assert!(functions.is_ok());
        });
        check(&plugin, (Language::C, "C"), |functions| {
            let expected =
                "`größe`, which answers `GET /v3/rails`, is not the name of a function in C";
            assert_eq!(functions.unwrap_err().to_string(), expected);
        });
    }
}
