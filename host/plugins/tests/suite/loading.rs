//! A start with files that take forever to compile, and the requests during it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use device_types::PluginState;
use http::{Method, StatusCode};
use plugins::{Action, RouteLookup};

use crate::fixture::{
    ALL, Fixture, Setup, guest_in_no_cache, manifest, never_compiled, plugin, setup, with_section,
};

/// Starts `setup` once with a compiler, so that its plugins are available as native code.
async fn warm(setup: Setup) {
    let device = setup.start().await;
    assert_eq!(device.plugins.problems(), [""; 0]);
}

fn find(device: &Fixture, path: &str) -> RouteLookup {
    device.plugins.find(&Method::GET, path)
}

fn is_loading(found: &RouteLookup, name: &str) -> bool {
    matches!(found, RouteLookup::Loading { plugin: Some(plugin) } if plugin == name)
}

#[tokio::test]
async fn a_file_that_compiles_for_ever_delays_nobody_at_a_start() {
    let both = || setup().guest("a", "").guest("b", "");
    warm(both()).await;
    let slow = never_compiled(&manifest("slow", ALL));
    let slower = never_compiled(&manifest("slower", ALL));
    let device = both()
        .file("00-slow.wasm", &slow)
        .file("00-slower.wasm", &slower)
        .policy(&crate::fixture::grant_all(&["a", "b", "slow", "slower"]))
        .compiler_that_hangs()
        .begin()
        .await;
    for path in ["/v3/a/hello", "/v3/b/hello"] {
        device.plugins.wait_until_served(&Method::GET, path).await;
        assert_eq!(device.get(path).await.0, StatusCode::OK);
    }
    // It is known at once which paths have no plugin, and which plugin provides what.
    assert!(matches!(find(&device, "/v3/nobody"), RouteLookup::None));
    device.plugins.wait_until_settled(Action::BootConfig).await;
    // Requests for the slow plugin's routes wait, whatever the method.
    assert!(is_loading(&find(&device, "/v3/slow/hello"), "slow"));
    let removes = device.plugins.find(&Method::DELETE, "/v3/slow/hello");
    assert!(matches!(removes, RouteLookup::Loading { plugin: None }));

    device.plugins.wait_until_listed().await;
    let report = device.report("slow");
    assert_eq!((report.state, report.refused), (PluginState::Loading, None));
    assert_eq!(report.routes.len(), 2);
    let described = device.plugins.routes();
    assert!(described.iter().any(|plugin| plugin.plugin == "slow"));
    assert_eq!(device.plugins.problems(), [""; 0]);

    // Once the file is gone, nothing waits for it.
    fs::remove_file(device.path("plugins/00-slow.wasm")).unwrap();
    device
        .plugins
        .wait_until_served(&Method::GET, "/v3/slow/hello")
        .await;
    assert!(matches!(find(&device, "/v3/slow/hello"), RouteLookup::None));
}

/// Each start must end with the same table, whichever plugin is compiled first.
#[tokio::test]
async fn the_first_of_two_files_gets_a_route_however_slow_it_is() {
    let route = "[[routes]]\nmethod = \"GET\"\npath = \"/v3/shared\"\n";
    let quick = || {
        let file = plugin(&(manifest("quick", ALL) + route));
        setup().file("01-quick.wasm", &file)
    };
    let policy = crate::fixture::grant_all(&["quick", "slow"]);
    warm(quick().policy(&policy)).await;
    let slow = never_compiled(&(manifest("slow", ALL) + route));
    let device = quick()
        .file("00-slow.wasm", &slow)
        .policy(&policy)
        .compiler_that_hangs()
        .begin()
        .await;
    device
        .until("the quick one waits", |plugins| {
            let is = |path| matches!(plugins.find(&Method::GET, path), RouteLookup::Loading { plugin: Some(name) } if name == "quick");
            is("/v3/quick/hello")
        })
        .await;
    let states = device.plugins.report().into_iter();
    let states: Vec<_> = states.map(|plugin| plugin.state).collect();
    assert_eq!(states, [PluginState::Loading; 2]);
    fs::remove_file(device.path("plugins/00-slow.wasm")).unwrap();
    device.plugins.wait_until_loaded().await;
    device
        .until("the quick one serves", |plugins| {
            matches!(
                plugins.find(&Method::GET, "/v3/shared"),
                RouteLookup::Route(_)
            )
        })
        .await;
}

/// Otherwise the first calls would get the answer that there is no provider.
#[tokio::test]
async fn a_plugin_that_has_others_do_something_waits_for_who_does_it() {
    let caller = || setup().guest("a", "");
    warm(caller()).await;
    let provides = "provides = [\"identify\"]\n";
    let provider = never_compiled(&manifest("slow", &format!("{ALL}\n{provides}")));
    let device = caller()
        .file("zz-slow.wasm", &provider)
        .policy(&crate::fixture::grant_all(&["a", "slow"]))
        .compiler_that_hangs()
        .begin()
        .await;
    device
        .until("it waits", |plugins| {
            let found = plugins.find(&Method::GET, "/v3/a/hello");
            is_loading(&found, "a")
        })
        .await;
    device.plugins.wait_until_settled(Action::BootConfig).await;
    let identify = device.plugins.wait_until_settled(Action::Identify);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), identify)
            .await
            .is_err()
    );
    fs::remove_file(device.path("plugins/zz-slow.wasm")).unwrap();
    device
        .plugins
        .wait_until_served(&Method::GET, "/v3/a/hello")
        .await;
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    device.plugins.wait_until_settled(Action::Identify).await;
}

/// Otherwise the update would go on without the gate, because no plugin that can be asked is in the way.
#[tokio::test]
async fn an_update_waits_for_a_gate_that_is_being_loaded_and_for_no_other_plugin() {
    let file = |name: &str, event: &str| {
        let events = format!("{ALL}\nprovides = [\"events\"]\nevents = [\"{event}\"]");
        never_compiled(&manifest(name, &events))
    };
    let policy = |name: &str, event: &str| {
        let grants = crate::fixture::grant_all(&[name]);
        format!("{grants}events = [\"{event}\"]\n")
    };
    let device = setup()
        .file("gate.wasm", &file("gate", "update-gate"))
        .file("watcher.wasm", &file("watcher", "start"))
        .policy(&(policy("gate", "update-gate") + &policy("watcher", "start")))
        .compiler_that_hangs()
        .begin()
        .await;
    device.plugins.wait_until_listed().await;
    let loading = || device.plugins.loading_update_gate();
    assert_eq!(loading().as_deref(), Some("gate"));
    let loaded = device.plugins.wait_until_update_gates_loaded();
    assert!(
        tokio::time::timeout(Duration::from_millis(50), loaded)
            .await
            .is_err()
    );
    fs::remove_file(device.path("plugins/gate.wasm")).unwrap();
    device.plugins.wait_until_update_gates_loaded().await;
    assert_eq!(loading(), None);
    assert_eq!(device.report("watcher").state, PluginState::Loading);
}

/// Manifests and signatures are not compiled: a file that differs in them needs no compiler.
#[tokio::test]
async fn code_that_was_compiled_is_found_whatever_the_manifest_beside_it_says() {
    let guest = guest_in_no_cache();
    let with_manifest = |more: &str| {
        let manifest = manifest("a", &format!("{ALL}\n{more}"));
        with_section(&guest, "platform:manifest", manifest.as_bytes())
    };
    let device = |file: &[u8]| {
        setup()
            .policy(&crate::fixture::grant_all(&["a"]))
            .file("a.wasm", file)
    };
    warm(device(&with_manifest(""))).await;
    let second = with_manifest("description = \"once more\"");
    let device = device(&second).compiler_that_hangs().start().await;
    let report = device.report("a");
    assert_eq!(report.about.description.as_deref(), Some("once more"));
    assert_eq!(report.digest, compiled_code::digest(&second));
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
}

/// Creates a compiler that fails, and writes a line each time.
fn failing_compiler(device: &Setup) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let program = device.root.path().join("compiler");
    let runs = device.root.path().join("runs");
    let text = format!(
        "#!/bin/sh\necho x >> {}\necho too strange >&2\nexit 1\n",
        runs.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[tokio::test]
async fn a_file_that_failed_to_compile_is_tried_again_when_somebody_touches_it() {
    let strange = never_compiled(&manifest("strange", ALL));
    let device = setup()
        .file("strange.wasm", &strange)
        .policy(&crate::fixture::grant_all(&["strange", "again"]));
    let compiler = failing_compiler(&device);
    let device = device.compiler(compiler).start().await;
    let runs = || fs::read_to_string(device.path("runs")).unwrap().len() / 2;
    assert_eq!(device.report("strange").state, PluginState::Refused);
    assert_eq!(runs(), 1);

    // The same content and the same time, as at the next start.
    let file = device.path("plugins/strange.wasm");
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    let copy = device.path("plugins/copy");
    fs::write(&copy, &strange).unwrap();
    let set_modified = |path: &PathBuf, time| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    };
    set_modified(&copy, modified);
    fs::rename(&copy, &file).unwrap();
    let hint = format!(
        "`touch {}` makes the supervisor try again at once",
        file.display()
    );
    device
        .until("it is remembered", |plugins| {
            let report = plugins.report();
            report[0].refused.as_deref().is_some_and(|refused| {
                refused.contains("too strange (an earlier attempt failed")
                    && refused.ends_with(&hint)
            })
        })
        .await;
    assert_eq!(runs(), 1);

    set_modified(&file, modified + Duration::from_secs(1));
    device
        .until("it was tried", |plugins| {
            let report = plugins.report();
            let refused = report[0].refused.as_deref();
            refused.is_some_and(|refused| refused.ends_with("too strange"))
        })
        .await;
    assert_eq!(runs(), 2);
}
