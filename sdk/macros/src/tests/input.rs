//! The input of the macro.

use plugin_manifest::Capability;

use super::{Crate, check_errors};

const ROUTE: &str = "routes: { GET \"/v3/rails\" => list }";

#[test]
fn parts_stand_in_any_order_with_or_without_commas() {
    let parts = [
        "capabilities: { store => \"keeps counters\", host-name => \"shows it\" }",
        "routes: { GET \"/v3/rails\" => rails::list POST \"/v3/rails/:name\" => crate::set, }",
        "identify => blink",
        "proxy-redirector => my::Redirector",
        "boards: [\"acme-*\"]",
        "limits: { wall_ms: 5_000, cpu-ms: 10 }",
        "description: \"Shows rails\"",
        "license: \"MIT\"",
        "vendor: \"Acme\"",
        "homepage: \"https://example.com\"",
        "boot_config => Firmware",
    ];
    let (manifest, paths) = Crate::new().accepted(&parts.join("\n"));
    assert_eq!(
        paths,
        "rails::list crate::set blink my::Redirector Firmware"
    );
    assert_eq!(manifest.capabilities[1].name.to_string(), "host-name");
    assert_eq!(manifest.about.licence.as_deref(), Some("MIT"));
    assert_eq!(manifest.limits.cpu_ms, Some(10));
    for start in 0..parts.len() {
        let mut turned = parts;
        turned.rotate_left(start);
        for separator in [" ", ", "] {
            let (other, _) = Crate::new().accepted(&turned.join(separator));
            assert_eq!(other.about, manifest.about);
            assert_eq!(other.routes, manifest.routes);
            assert_eq!(other.provides.len(), 3);
        }
    }
    let (underscored, _) =
        Crate::new().accepted(&parts.join(" ").replace("host-name", "host_name"));
    assert_eq!(underscored, manifest);
}

/// The crates in `plugins/` are those that a device lists as stock plugins.
#[test]
fn a_stock_plugin_answers_below_v1_and_v2() {
    let plugin = Crate::new().with_name("device-info");
    let (manifest, _) = plugin.accepted("routes: { GET \"/v2/rails\" => list }");
    assert_eq!(manifest.routes[0].to_string(), "GET /v2/rails");
}

#[test]
fn each_mistake_is_reported_at_its_place() {
    check_errors(&[
        (
            "events: [\"service\", \"start\", \"start\", \"schedule\"] on_event => watch",
            &[
                "1:10: there is no event `service`: use `start`, `services`, `target`, `connection`, `update-gate`, `health-gate`",
                "1:30: `start` is here a second time: leave one out",
                "1:39: name the times: `schedules: { nightly => \"daily 03:30\" }`",
            ],
        ),
        (
            "schedules: { Nightly => \"daily 3\", a } on_event => watch",
            &[
                "1:36: say when it is due: `schedules: { nightly => \"daily 03:30\" }`",
                "1:14: the schedule `Nightly` must have a name of at most 63 lower-case letters, digits and `-`, that begins \
                 with a letter or digit",
                "1:25: `daily 3` is not a schedule: write `every 30s` (s, m, h or d, from 10 s to 31 days), `daily 03:30` or \
                 `weekly monday 03:30`, in UTC",
            ],
        ),
        (
            "routes: { GET \"v3/rails\" => list }",
            &["1:15: invalid route `v3/rails`: it must begin with `/`"],
        ),
        (
            "routes: {\n    FETCH \"/v3/rails\" => list,\n    GET \"/v3/*rest\" => list,\n}",
            &[
                "2:5: `FETCH` is not the method of a route: use GET, POST, PUT, PATCH or DELETE",
                "3:9: invalid route `/v3/*rest`: a segment is of letters, digits and `-._~`, and not empty",
            ],
        ),
        (
            "routes: { GET \"/v3/r/:a\" => one, POST \"/v3/r/:a\" => two, GET \"/v3/r/:b\" => three }",
            &["1:62: `GET /v3/r/:a` matches the same paths: leave one of them out"],
        ),
        (
            "routes: { GET \"/v3/plugins\" => list }",
            &["1:15: `GET /v3/plugins` is a route of the supervisor's own: choose another path"],
        ),
        (
            "routes: { GET \"/v2/rails\" => list, GET \"/:any/rails\" => list, GET \"/v1/device\" => list }",
            &[
                "1:15: only stock plugins answer below `/v1` and `/v2`: choose another path",
                "1:40: only stock plugins answer below `/v1` and `/v2`: choose another path",
                "1:67: `GET /v1/device` is a route of the supervisor's own: choose another path",
            ],
        ),
        (
            "routes: { GET \"/v3/rails\" }",
            &[
                "1:27: unexpected end of input, say which function answers: `routes: { GET \"/v3/hello\" => hello }`",
            ],
        ),
        (
            "routes: { GET \"/v3/rails\" => 5, GET /v3 => list, }",
            &[
                "1:30: write a path: `routes: { GET \"/v3/hello\" => hello }`",
                "1:37: write the route's path in quotes: `routes: { GET \"/v3/hello\" => hello }`",
            ],
        ),
        (
            "routes: [1]",
            &["1:9: write it in braces: `routes: { GET \"/v3/hello\" => hello }`"],
        ),
        (
            "",
            &[
                "1:1: the plugin has no routes and provides nothing: add `routes: { GET \"/v3/hello\" => hello }`",
            ],
        ),
        (
            "routes: {} identify: blink",
            &["1:20: write `identify => blink`"],
        ),
        (
            "routes: {} boards: [\"\"]",
            &[
                "1:1: the plugin has no routes and provides nothing: add `routes: { GET \"/v3/hello\" => hello }`",
                "1:21: the name of a board must have 1 to 512 bytes, and has 0",
            ],
        ),
        (
            "identify => blink, identify => blink",
            &["1:20: `identify` is here a second time: make one part of both"],
        ),
        (
            "licence: \"MIT\" identify => blink license: \"MIT\"",
            &["1:34: `license` is here a second time: make one part of both"],
        ),
        (
            "identify => blink homepage: \"example.com\" vendor: Acme description: \"a\\nb\"",
            &[
                "1:51: write a text in quotes: `vendor: \"Acme\"`",
                "1:29: `homepage` must begin with `https://` or `http://`",
                "1:69: `description` must be one line of text",
            ],
        ),
        (
            "identify => blink \"text\"",
            &[&format!("1:19: expected one of {PARTS}")],
        ),
        (
            "rotes: { GET \"/v3/rails\" => list } identify => blink",
            &[&format!("1:1: there is no part `rotes`: use {PARTS}")],
        ),
    ]);
}

const PARTS: &str = "`capabilities`, `routes`, `openapi`, `identify`, `proxy_redirector`, `boot_config`, `os_update`, `events`, `schedules`, `actions`, \
    `on_event`, `boards`, \
                     `limits`, `description`, `vendor`, `licence`, `homepage`";

/// Returns the message that lists the capabilities, and what needs none.
fn capabilities_and_others() -> String {
    let names = Capability::all().iter();
    let names = names.filter(|name| name.is_for_manifests());
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    format!("{names}; `log`, `config`, `timer` and `caller` need none")
}

#[test]
fn capabilities_are_those_of_the_device_and_have_reasons() {
    let list = capabilities_and_others();
    for (capabilities, expected) in [
        (
            "gpoi => \"x\"",
            vec![format!("1:17: there is no capability `gpoi`: use {list}")],
        ),
        (
            "timer => \"x\"",
            vec!["1:17: every plugin may use `timer`: leave it out here".to_owned()],
        ),
        (
            "update-lock-force => \"x\"",
            vec!["1:17: only a policy gives `update-lock-force`: leave it out here".to_owned()],
        ),
        (
            "store",
            vec!["1:17: say why it is needed: `store => \"why it is needed\"`".to_owned()],
        ),
        (
            "store, host-name,\nled => 5",
            vec![
                "1:17: say why it is needed: `store => \"why it is needed\"`".to_owned(),
                "1:24: say why it is needed: `host_name => \"why it is needed\"`".to_owned(),
                "2:8: write the reason in quotes: `led => \"why it is needed\"`".to_owned(),
            ],
        ),
        (
            "store => \" \"",
            vec![
                "1:26: the reason for the capability `store` must have 1 to 512 bytes, and has 1"
                    .to_owned(),
            ],
        ),
        (
            "host_name => \"x\", host-name => \"y\"",
            vec!["1:35: `host-name` is here a second time: leave one out".to_owned()],
        ),
    ] {
        let input = format!("capabilities: {{ {capabilities} }} {ROUTE}");
        assert_eq!(Crate::new().errors(&input), expected, "{input}");
    }
}

#[test]
fn limits_are_those_of_the_device_and_within_their_ranges() {
    let list = "`memory_mib`, `cpu_ms`, `wall_ms`, `body_kib`, `concurrency`";
    for (limits, expected) in [
        (
            "memory: 8",
            format!("1:11: there is no limit `memory`: use {list}"),
        ),
        (
            "memory_mib: 33",
            "1:23: `memory_mib` is 33, but must be 1 to 32".to_owned(),
        ),
        (
            "cpu_ms: 0",
            "1:19: `cpu_ms` is 0, but must be 1 to 60000".to_owned(),
        ),
        (
            "wall_ms: 99999999999999999999",
            "1:20: `wall_ms` is 4294967295, but must be 1 to 900000".to_owned(),
        ),
        (
            "wall_ms: \"5\"",
            "1:20: a limit is a whole number: `limits: { wall_ms: 5000 }`".to_owned(),
        ),
        (
            "wall_ms: 5, wall-ms: 6",
            "1:23: `wall_ms` is here a second time: leave one out".to_owned(),
        ),
    ] {
        let input = format!("limits: {{ {limits} }} {ROUTE}");
        assert_eq!(Crate::new().errors(&input), [expected], "{input}");
    }
}

#[test]
fn independent_mistakes_are_reported_at_once() {
    check_errors(&[(
        "capabilities: { stor => \"keeps\" , led }
         boardz: [\"a\"]
         routes: { GET \"v3\" => list, PUT \"/v3/x\" => put, PUT \"/v3/x\" => put }
         limits: { memory_mib: 64 }",
        &[
            "1:35: say why it is needed: `led => \"why it is needed\"`",
            &format!("2:10: there is no part `boardz`: use {PARTS}"),
            &format!(
                "1:17: there is no capability `stor`: use {}",
                capabilities_and_others()
            ),
            "3:24: invalid route `v3`: it must begin with `/`",
            "3:62: `PUT /v3/x` matches the same paths: leave one of them out",
            "4:32: `memory_mib` is 64, but must be 1 to 32",
        ],
    )]);
}

#[test]
fn a_plugin_has_a_bounded_number_of_routes_and_boards() {
    let line = |index: usize| format!("GET \"/v3/r{index}\" => list,");
    let routes = |count: usize| (0..count).map(line).collect::<String>();
    Crate::new().accepted(&format!("routes: {{ {} }}", routes(64)));
    let errors = Crate::new().errors(&format!("routes: {{\n{}\n{} }}", routes(64), line(64)));
    assert_eq!(
        errors,
        ["3:5: a plugin has at most 64 routes: leave out the others"]
    );
    let errors = Crate::new().errors(&format!("{ROUTE} boards: [{}]", "\"a\",".repeat(66)));
    assert_eq!(
        errors,
        ["1:302: a plugin names at most 64 boards: leave out the others"]
    );
}

#[test]
fn a_crate_whose_name_no_plugin_can_have_says_what_to_do() {
    let errors = Crate::new().with_name("Acme_M").errors(ROUTE);
    assert_eq!(
        errors,
        [
            "1:1: `Acme_M` cannot be the name of a plugin: rename the package in Cargo.toml, for example to `acme-m`, \
          or put `name = \"acme-m\"` into plugin.toml"
        ]
    );
}

#[test]
fn a_description_of_routes_is_a_short_json_object_that_is_there() {
    let errors = |content: &[u8]| {
        let with_file = Crate::new().with_file("openapi.json", content);
        with_file.errors(&format!("{ROUTE}\nopenapi: \"openapi.json\""))
    };
    assert_eq!(errors(b"{}"), Vec::<String>::new());
    assert_eq!(
        errors(b"[]"),
        [
            "2:10: `openapi.json` must be a JSON object: invalid type: sequence, expected a map at line 1 column 0"
        ]
    );
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(64 << 10));
    assert_eq!(
        errors(long.as_bytes()),
        ["2:10: `openapi.json` has 65545 bytes: shorten it to 65536"]
    );
    let missing = Crate::new().errors(&format!("{ROUTE}\nopenapi: \"openapi.json\""));
    assert_eq!(
        missing,
        [
            "2:10: failed to read `openapi.json` beside Cargo.toml: No such file or directory (os error 2)"
        ]
    );
}

#[test]
fn named_handlers_count_as_used_despite_other_errors() {
    let input = format!("{ROUTE} proxy_redirector => My identify => blink limits: {{ cpu: 1 }}");
    let expansion =
        crate::expand::expand(input.parse().unwrap(), &Crate::new().package).to_string();
    for part in [
        "compile_error !",
        "let _ = list",
        "let _ = blink",
        "PhantomData < My >",
    ] {
        assert!(expansion.contains(part), "{expansion}");
    }
}
