//! The policy decides what plugins answer and provide, not the plugins.

use std::fs;

use device_types::PluginState;
use http::{Method, StatusCode};
use plugins::{Plugins, RouteLookup};

use crate::fixture::{ALL, grant_all, manifest, plugin, setup};

/// Returns the capabilities and the pin of a plugin of another maker.
fn trusted(name: &str, file: &[u8]) -> String {
    let digest = compiled_code::digest(file);
    format!("{}sha256 = [\"{digest}\"]\n", grant_all(&[name]))
}

fn is_refused(name: &'static str, with: &'static str) -> impl Fn(&Plugins) -> bool {
    move |plugins| {
        let report = plugins.report();
        let report = report.iter().find(|report| report.name == name);
        let refused = report.and_then(|report| report.refused.as_deref());
        refused.is_some_and(|refused| refused.contains(with))
    }
}

fn runs(name: &'static str) -> impl Fn(&Plugins) -> bool {
    move |plugins| {
        let report = plugins.report();
        let mut named = report.iter().filter(|report| report.name == name);
        named.any(|report| report.state == PluginState::Running && report.refused.is_none())
    }
}

#[tokio::test]
async fn a_plugin_answers_the_routes_of_the_policy_and_no_others() {
    let file = plugin(&manifest("acme", ALL));
    let device = setup()
        .strange_file("00-acme.wasm", &file)
        .policy(&trusted("acme", &file))
        .start()
        .await;
    let refused = device.report("acme").refused.unwrap();
    for part in [
        "answers `/v3/acme/:what`, which the policy",
        "to allow it, give its section `[plugins.acme]` the line `routes = [\"/v3/acme/:what\"]`",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    let policy = device.path("policy.toml");
    let with = |routes: &str| {
        let text = format!("{}routes = [{routes}]\n", trusted("acme", &file));
        fs::write(&policy, text).unwrap();
    };
    with("\"/v3/acme/*\"");
    device.until("it serves", runs("acme")).await;
    assert_eq!(device.get("/v3/acme/hello").await.0, StatusCode::OK);
    with("\"/v3/other/*\"");
    let answers = is_refused("acme", "answers `/v3/acme/:what`");
    device.until("its routes are taken away", answers).await;
    let found = device.plugins.find(&Method::GET, "/v3/acme/hello");
    assert!(matches!(found, RouteLookup::None), "{found:?}");
}

#[tokio::test]
async fn below_v1_and_v2_only_stock_plugins_answer() {
    let route = "[[routes]]\nmethod = \"PATCH\"\npath = \"/v1/device/host-config\"\n";
    let file = plugin(&(manifest("acme", ALL) + route));
    let trusted = trusted("acme", &file) + "routes = [\"/v3/acme/*\"]\n";
    let device = setup()
        .strange_file("00-acme.wasm", &file)
        .policy(&trusted)
        .start()
        .await;
    assert_eq!(
        device.report("acme").refused.unwrap(),
        "plugin `acme` answers `/v1/device/host-config`, and only stock plugins answer below `/v1` and `/v2`"
    );
    for route in ["/v1/device/host-config", "/V2/*", "/:any/*"] {
        let policy = trusted.replace("/v3/acme/*", route);
        fs::write(device.path("policy.toml"), policy).unwrap();
        let expected = format!("the route `{route}` reaches below `/v1` or `/v2`");
        device
            .until("the policy is refused", |plugins| {
                plugins
                    .problems()
                    .iter()
                    .any(|problem| problem.contains(&expected))
            })
            .await;
        assert_eq!(device.report("acme").state, PluginState::Refused);
    }
    // A stock plugin gets its routes from the layout.
    device.pin(&file);
    fs::write(device.path("policy.toml"), grant_all(&["acme"])).unwrap();
    device.until("it serves", runs("acme")).await;
}

#[tokio::test]
async fn an_action_is_provided_by_whom_the_policy_names() {
    let provides = "provides = [\"proxy-redirector\"]";
    let file = plugin(&manifest(
        "acme",
        &format!("{ALL}\n{provides}\nboards = [\"*\"]"),
    ));
    let base = grant_all(&["caller", "general"]) + &trusted("acme", &file);
    let base = base + "routes = [\"/v3/acme/*\"]\n";
    let device = setup()
        .guest("caller", "")
        .guest("general", provides)
        .strange_file("00-acme-light.wasm", &file)
        .policy(&base)
        .start()
        .await;
    let policy = device.path("policy.toml");
    let calls = |name: &str| device.report(name).calls;
    let refused = device.report("acme").refused.unwrap();
    for part in [
        "provides `proxy-redirector`, which the policy",
        "to allow it, give its section `[plugins.acme]` the line `provides = [\"proxy-redirector\"]`",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    assert_eq!(device.get("/v3/caller/proxy").await.0, StatusCode::OK);
    assert_eq!(calls("general"), 1);

    // Providing what another plugin already provides requires an extra setting.
    fs::write(&policy, format!("{base}{provides}\n")).unwrap();
    let also = is_refused("acme", "is also provided by the plugin `general`");
    device.until("both provide it", also).await;

    // `*` does not name a board.
    fs::write(&policy, format!("{base}{provides}\nboards = [\"*\"]\n")).unwrap();
    device
        .until("the policy is refused", |plugins| {
            let problems = plugins.problems();
            problems
                .iter()
                .any(|problem| problem.contains("`*` is not a board"))
        })
        .await;
    assert_eq!(device.get("/v3/caller/proxy").await.0, StatusCode::OK);
    assert_eq!(calls("general"), 2);

    fs::write(
        &policy,
        format!("{base}{provides}\nboards = [\"acme-*\"]\n"),
    )
    .unwrap();
    device
        .until("it to take precedence over the other", runs("acme"))
        .await;
    assert_eq!(device.get("/v3/caller/proxy").await.0, StatusCode::OK);
    assert_eq!((calls("general"), calls("acme")), (2, 1));
}
