//! Which files a name in the policy refers to.

use std::fs;

use device_types::PluginState;
use http::{Method, StatusCode};
use plugins::RouteLookup;

use crate::fixture::{ALL, Fixture, grant_all, manifest, plugin, setup, with_section};

/// Returns a plugin `a` that is not the layout's: it differs in its bytes and in nothing else.
fn impostor() -> Vec<u8> {
    with_section(&plugin(&manifest("a", ALL)), "stamp", b"another file")
}

fn states(device: &Fixture) -> Vec<(String, PluginState)> {
    let name = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
    let report = device.plugins.report();
    let mut states: Vec<_> = report
        .iter()
        .map(|plugin| (name(&plugin.file), plugin.state))
        .collect();
    states.sort_by(|one, other| one.0.cmp(&other.0));
    states
}

/// Returns what a refusal names between `before` and the next backtick.
fn quoted<'a>(refusal: &'a str, before: &str) -> Vec<&'a str> {
    let quoted = refusal.split(before).skip(1);
    quoted.map(|rest| rest.split_once('`').unwrap().0).collect()
}

/// Appends to the policy what each refusal of the file suggests, as it is printed, until the plugin is loaded. Returns
/// the lines.
async fn follow_refusals(device: &Fixture, file: &[u8]) -> Vec<String> {
    let policy = device.path("policy.toml");
    let mut lines: Vec<String> = Vec::new();
    let mut before = None;
    loop {
        device
            .until("it is judged again", |plugins| {
                let report = &plugins.report()[0];
                let is_loaded = report.state == PluginState::Running;
                match &report.refused {
                    None => is_loaded && report.digest == compiled_code::digest(file),
                    refused => *refused != before,
                }
            })
            .await;
        let Some(refusal) = device.report("a").refused else {
            return lines;
        };
        let suggested = quoted(&refusal, "the line `");
        assert!(!suggested.is_empty(), "{refusal}");
        let mut text = fs::read_to_string(&policy).unwrap();
        for section in quoted(&refusal, "section `") {
            assert_eq!(section, "[plugins.a]", "{refusal}");
            if !text.contains(section) {
                text = format!("{text}{section}\n");
            }
        }
        for line in suggested {
            lines.push(line.to_owned());
            text = format!("{text}{line}\n");
        }
        // Renamed into place, so that a partial policy is never read.
        fs::write(device.path("policy.new"), text).unwrap();
        fs::rename(device.path("policy.new"), &policy).unwrap();
        before = Some(refusal);
    }
}

fn nobody_answers(device: &Fixture, path: &str) -> bool {
    matches!(device.plugins.find(&Method::GET, path), RouteLookup::None)
}

#[tokio::test]
async fn a_file_gets_nothing_by_claiming_a_name_of_the_policy() {
    let device = setup()
        .strange_file("weather.wasm", &impostor())
        .policy(&grant_all(&["a"]))
        .start()
        .await;
    let report = device.report("a");
    assert_eq!(report.state, PluginState::Refused);
    assert!(report.grants.is_empty(), "{report:?}");
    let refused = report.refused.unwrap();
    for part in [
        "pins no file of a plugin `a`".to_owned(),
        compiled_code::digest(&impostor()),
        device.path("policy.toml").display().to_string(),
    ] {
        assert!(refused.contains(&part), "{refused}");
    }
    assert!(nobody_answers(&device, "/v3/a/hello"));

    // Its owner trusts it.
    let digest = compiled_code::digest(&impostor());
    let pin = format!("sha256 = [\"{digest}\"]\nroutes = [\"/v3/a/*\"]\n");
    fs::write(device.path("policy.toml"), grant_all(&["a"]) + &pin).unwrap();
    device
        .until("it serves", |plugins| {
            plugins.report()[0].state == PluginState::Running
        })
        .await;
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
}

#[tokio::test]
async fn the_lines_that_refusals_suggest_are_all_that_a_policy_needs() {
    let manifest = manifest(
        "a",
        &format!(
            "{ALL}\nprovides = [\"identify\", \"events\"]\nevents = [\"start\", \"update-gate\"]"
        ),
    );
    let file = plugin(&manifest);
    let device = setup()
        .strange_file("a.wasm", &file)
        .policy("")
        .start()
        .await;
    let lines = follow_refusals(&device, &file).await;
    let keys: Vec<_> = lines
        .iter()
        .filter_map(|line| Some(line.split_once(' ')?.0))
        .collect();
    assert_eq!(keys, ["sha256", "routes", "provides", "events", "grants"]);
    assert_eq!(device.get("/v3/a/store?set=3").await.0, StatusCode::OK);
    assert_eq!(device.report("a").provides, ["identify", "events"]);
    assert_eq!(device.report("a").events, ["start", "update-gate"]);

    // In the place of a plugin of the layout.
    let device = setup().guest("a", "").start().await;
    fs::write(device.path("plugins/new"), impostor()).unwrap();
    fs::rename(device.path("plugins/new"), device.path("plugins/a.wasm")).unwrap();
    let lines = follow_refusals(&device, &impostor()).await;
    let digest = compiled_code::digest(&impostor());
    let expected = [
        format!("sha256 = [\"{digest}\"]"),
        "routes = [\"/v3/a/:what\"]".to_owned(),
    ];
    assert_eq!(lines, expected);
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
}

#[tokio::test]
async fn another_file_in_the_place_of_a_pinned_one_is_refused_and_the_one_before_serves_on() {
    let device = setup().guest("a", "").start().await;
    assert_eq!(device.get("/v3/a/store?set=3").await.0, StatusCode::OK);
    let file = device.path("plugins/a.wasm");
    fs::write(device.path("plugins/new"), impostor()).unwrap();
    fs::rename(device.path("plugins/new"), &file).unwrap();
    device
        .until("it is refused", |plugins| {
            plugins.report()[0].refused.is_some()
        })
        .await;
    let report = device.report("a");
    let refused = report.refused.unwrap();
    assert!(
        refused.contains("`a` is a stock plugin, and this is another file"),
        "{refused}"
    );
    assert_eq!(report.state, PluginState::Running, "the pinned one");
    assert_ne!(report.digest, compiled_code::digest(&impostor()));
    assert_eq!(device.get("/v3/a/store").await.1, "Some(3) [\"k\"]");
}

#[tokio::test]
async fn of_two_files_that_claim_a_name_neither_is_loaded_whatever_their_order() {
    for second in ["00-first.wasm", "zz-last.wasm"] {
        // Before the start.
        let device = setup()
            .guest("a", "")
            .guest("b", "")
            .strange_file(second, &impostor())
            .start()
            .await;
        let refused: Vec<_> = device
            .plugins
            .report()
            .into_iter()
            .filter(|plugin| plugin.name == "a")
            .map(|plugin| (plugin.state, plugin.refused.unwrap()))
            .collect();
        assert_eq!(refused.len(), 2);
        for (state, refused) in refused {
            assert_eq!(state, PluginState::Refused);
            for file in ["plugins/a.wasm", second] {
                assert!(refused.contains(&format!("{file}`")), "{refused}");
            }
        }
        assert!(nobody_answers(&device, "/v3/a/hello"));
        assert_eq!(device.get("/v3/b/hello").await.0, StatusCode::OK);
        // One is removed, and the other is accepted for what it claims.
        fs::remove_file(device.path("plugins").join(second)).unwrap();
        device
            .until("the pinned one serves", |plugins| {
                plugins.problems().is_empty()
            })
            .await;
        assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);

        // While the plugin serves.
        fs::write(device.path("new"), impostor()).unwrap();
        fs::rename(device.path("new"), device.path("plugins").join(second)).unwrap();
        device
            .until("neither serves", |plugins| plugins.problems().len() == 2)
            .await;
        let expected = [PluginState::Refused; 2];
        let found: Vec<_> = states(&device)
            .into_iter()
            .filter(|(file, _)| file != "b.wasm")
            .map(|(_, state)| state)
            .collect();
        assert_eq!(found, expected, "{second}");
        assert!(nobody_answers(&device, "/v3/a/hello"));
    }
}

/// A stock plugin for other boards serves nothing here, but its name is still not free.
#[tokio::test]
async fn the_name_of_a_plugin_for_other_boards_is_not_free() {
    let theirs = plugin(&manifest(
        "a",
        &format!("{ALL}\nboards = [\"raspberrypi*\"]"),
    ));
    let device = setup()
        .policy(&grant_all(&["a"]))
        .file("stock.wasm", &theirs)
        .strange_file("weather.wasm", &impostor())
        .start()
        .await;
    let expected = [
        ("stock.wasm".to_owned(), PluginState::Refused),
        ("weather.wasm".to_owned(), PluginState::Refused),
    ];
    assert_eq!(states(&device), expected);
}

#[tokio::test]
async fn developers_go_without_pins_and_everybody_sees_it() {
    let routes = "routes = [\"/v3/a/*\"]\nsha256 = []\n";
    let device = setup()
        .policy(&(grant_all(&["a"]) + routes))
        .strange_file("weather.wasm", &impostor())
        .allow_unpinned()
        .start()
        .await;
    let report = device.report("a");
    assert_eq!(
        (report.state, report.unpinned),
        (PluginState::Running, true)
    );
    assert!(device.plugins.allow_unpinned());
    let problems = device.plugins.problems();
    assert!(problems[0].contains("--allow-unpinned"), "{problems:?}");
    assert_eq!(device.get("/v3/a/store?set=3").await.0, StatusCode::OK);
    assert_eq!(device.get("/v3/a/store").await.1, "Some(3) [\"k\"]");

    // What it has stored is not available to the pinned plugin.
    device.pin(&impostor());
    fs::write(device.path("policy.toml"), grant_all(&["a"])).unwrap();
    device
        .until("it is pinned", |plugins| {
            let report = plugins.report();
            report[0].state == PluginState::Running && !report[0].unpinned
        })
        .await;
    assert_eq!(device.get("/v3/a/store").await.1, "None []");
    // And two files of one name are a conflict.
    fs::write(device.path("new"), plugin(&manifest("a", ALL))).unwrap();
    fs::rename(device.path("new"), device.path("plugins/zz.wasm")).unwrap();
    device
        .until("neither serves", |plugins| {
            let report = plugins.report();
            let states = report.iter().map(|plugin| plugin.state);
            report.len() == 2 && states.eq([PluginState::Refused; 2])
        })
        .await;
}
