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
