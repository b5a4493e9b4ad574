//! Files and policies that change while requests arrive.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use device_types::{PluginReport, PluginState};
use http::StatusCode;

use crate::fixture::{ALL, grant_all, manifest, never_compiled, plugin, setup};

/// Returns one of many versions of the plugin `a`.
fn version(number: usize) -> Vec<u8> {
    plugin(&manifest("a", ALL).replace("1.0.0\"\ninterface", &format!("1.0.{number}\"\ninterface")))
}

fn serves(number: usize) -> impl Fn(&plugins::Plugins) -> bool {
    let version = format!("1.0.{number}");
    move |plugins| {
        let is = |plugin: &PluginReport| {
            plugin.name == "a"
                && plugin.state == PluginState::Running
                && plugin.version.as_ref() == Some(&version)
        };
        plugins.report().iter().any(is)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_during_twenty_swaps_see_no_error() {
    let device = Arc::new(setup().guest("a", "").start().await);
    let answered = Arc::new(AtomicUsize::new(0));
    let swapped = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (device, answered, swapped) = (
                Arc::clone(&device),
                Arc::clone(&answered),
                Arc::clone(&swapped),
            );
            tokio::spawn(async move {
                while answered.load(SeqCst) < 1_000 || swapped.load(SeqCst) < 20 {
                    let path = if answered.fetch_add(1, SeqCst) % 5 == 0 {
                        "sleep?ms=10"
                    } else {
                        "hello"
                    };
                    let (status, body) = device.get(&format!("/v3/a/{path}")).await;
                    assert_eq!(status, StatusCode::OK, "{body}");
                }
            })
        })
        .collect();
    for swap in 1..=20 {
        // Two versions in turn, so that the time is spent on swapping and not on compiling.
        let number = 1 + swap % 2;
        if swap > 10 {
            device.remove_and_write("a.wasm", &version(number));
        } else {
            device.replace("a.wasm", &version(number));
        }
        device.until("the new version serves", serves(number)).await;
        swapped.fetch_add(1, SeqCst);
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let report = device.report("a");
    assert_eq!(
        (report.failures, report.version.as_deref()),
        (0, Some("1.0.1"))
    );
    assert_eq!(
        usize::try_from(report.calls).unwrap(),
        answered.load(SeqCst),
        "calls count over all versions"
    );
}

#[tokio::test]
async fn a_version_that_does_not_load_leaves_the_old_one_serving() {
    let device = setup().guest("a", "").guest("b", "").start().await;
    let whole = version(1);
    for (what, content) in [
        ("it is cut off or damaged at byte ", &whole[..1_000]),
        (
            "it has no section `platform:manifest`",
            crate::fixture::guest(),
        ),
        (
            "its route `GET /v3/b/:what` is also the plugin `b`'s",
            &plugin(
                &(manifest("a", ALL) + "[[routes]]\nmethod = \"GET\"\npath = \"/v3/b/:what\"\n"),
            )[..],
        ),
    ] {
        device.replace("a.wasm", content);
        device
            .until(what, |plugins| {
                plugins.report()[0]
                    .refused
                    .as_deref()
                    .is_some_and(|refused| refused.contains(what))
            })
            .await;
        let report = device.report("a");
        assert_eq!(
            (report.state, report.version.as_deref()),
            (PluginState::Running, Some("1.0.0"))
        );
        assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
        let problem = device.plugins.problems();
        assert!(
            problem[0].contains("its previous version stays in use"),
            "{problem:?}"
        );
    }
    device.replace("a.wasm", &whole);
    device.until("the good version serves", serves(1)).await;
    assert_eq!(device.report("a").refused, None);
}

/// Only the file goes: neither the refused one nor the policy is touched.
#[tokio::test]
async fn a_refused_plugin_is_judged_again_when_the_one_in_its_way_goes() {
    let route = "[[routes]]\nmethod = \"GET\"\npath = \"/v3/shared/hello\"\n";
    let file = |name: &str, more: &str| plugin(&(manifest(name, ALL) + more));
    let device = setup()
        .file("1-hello.wasm", &file("hello", route))
        .file("2-rival.wasm", &file("rival", route))
        .file("3-same.wasm", &file("same", ""))
        .file("4-same.wasm", &file("same", "# another file"))
        .policy(&grant_all(&["hello", "rival", "same"]))
        .start()
        .await;
    let states = || {
        device
            .plugins
            .report()
            .into_iter()
            .map(|plugin| plugin.state)
    };
    let (runs, refused) = (PluginState::Running, PluginState::Refused);
    assert_eq!(
        states().collect::<Vec<_>>(),
        [runs, refused, refused, refused]
    );

    fs::remove_file(device.path("plugins/1-hello.wasm")).unwrap();
    fs::remove_file(device.path("plugins/3-same.wasm")).unwrap();
    device
        .until("both run", |plugins| {
            let report = plugins.report();
            report.len() == 2
                && report
                    .iter()
                    .all(|plugin| plugin.state == PluginState::Running)
        })
        .await;
    assert_eq!(device.get("/v3/shared/hello").await.0, StatusCode::OK);
}

#[tokio::test]
async fn plugins_come_and_go_with_their_files() {
    let device = setup().policy(&grant_all(&["a"])).start().await;
    assert!(device.plugins.report().is_empty());
    device.pin(&version(1));
    // Written in place, slowly: only the complete file counts.
    {
        use std::io::Write as _;
        let mut file = fs::File::create(device.path("plugins/a.wasm")).unwrap();
        for part in version(1).chunks(50_000) {
            file.write_all(part).unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
    device.until("it serves", serves(1)).await;
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    fs::remove_file(device.path("plugins/a.wasm")).unwrap();
    device
        .until("it is gone", |plugins| plugins.report().is_empty())
        .await;
    let found = device.plugins.find(&http::Method::GET, "/v3/a/hello");
    assert!(matches!(found, plugins::RouteLookup::None));
}

#[tokio::test]
async fn a_file_that_is_no_component_is_refused_without_waiting_until_it_settles() {
    let device = setup().start().await;
    let path = device.path("plugins/busy.wasm");
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = {
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            // A different file at each check.
            while !is_over.load(SeqCst) {
                let beside = path.with_extension("new");
                fs::write(&beside, b"no component at all").unwrap();
                fs::rename(&beside, &path).unwrap();
            }
        })
    };
    let refused = |plugins: &plugins::Plugins| {
        let report = plugins.report();
        let reason = report.first().and_then(|file| file.refused.as_deref());
        reason.is_some_and(|reason| reason.starts_with("it is not WebAssembly"))
    };
    device.until("it is refused for what it is", refused).await;
    is_over.store(true, SeqCst);
    writer.join().unwrap();
}

/// At the start, neither the second plugin folder nor its parent folder exists.
#[tokio::test]
async fn a_folder_may_come_later_go_and_come_again() {
    let device = setup().policy(&grant_all(&["a"])).start().await;
    device.pin(&version(1));
    device.pin(&version(2));
    let gone = |plugins: &plugins::Plugins| plugins.report().is_empty();
    let folder = device.path("later/more");
    // Step by step.
    fs::create_dir(device.path("later")).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.wasm"), version(1)).unwrap();
    device.until("it serves", serves(1)).await;
    // Like a file system that is unmounted and mounted again.
    fs::rename(device.path("later"), device.path("away")).unwrap();
    device.until("it is gone", gone).await;
    fs::rename(device.path("away"), device.path("later")).unwrap();
    device.until("it serves again", serves(1)).await;
    // It is now watched like any other.
    fs::write(folder.join("new"), version(2)).unwrap();
    fs::rename(folder.join("new"), folder.join("a.wasm")).unwrap();
    device.until("its new version serves", serves(2)).await;
    // Removed and created again, in one go.
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    device.until("it is gone", gone).await;
    fs::write(folder.join("a.wasm"), version(1)).unwrap();
    device.until("the other folder serves", serves(1)).await;
    // A link to another folder in its place.
    fs::create_dir(device.path("second")).unwrap();
    fs::write(device.path("second/a.wasm"), version(2)).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(device.path("second"), &folder).unwrap();
    device.until("the link is followed", serves(2)).await;
    std::os::unix::fs::symlink(device.path("plugins"), device.path("link")).unwrap();
    fs::rename(device.path("link"), &folder).unwrap();
    device.until("the new link is followed", gone).await;
}

#[tokio::test]
async fn a_changed_policy_is_in_force_at_once() {
    let device = setup().guest("a", "").start().await;
    let policy = device.path("policy.toml");
    fs::write(&policy, "[plugins.a]\ngrants = [\"device\"]\n").unwrap();
    device
        .until("it loses its grants", |plugins| {
            plugins.report()[0].state == PluginState::Refused
        })
        .await;
    let refused = device.report("a").refused.unwrap();
    assert!(
        refused.contains("needs the capabilities `store` (r), `led` (r)"),
        "{refused}"
    );

    fs::write(&policy, grant_all(&["a"]) + "limits = { wall_ms = 20 }\n").unwrap();
    device
        .until("it gets them back", |plugins| {
            plugins.report()[0].state == PluginState::Running
        })
        .await;
    assert_eq!(
        device.get("/v3/a/sleep").await.0,
        StatusCode::GATEWAY_TIMEOUT
    );

    // A typing error changes nothing, and is reported.
    fs::write(&policy, "[plugins.a]\ngrant = []\n").unwrap();
    device
        .until("the problem to be reported", |plugins| {
            !plugins.problems().is_empty()
        })
        .await;
    let problem = device.plugins.problems().remove(0);
    assert!(
        problem.contains("policy.toml` is invalid") && problem.contains("line 2"),
        "{problem}"
    );
    // Not because of a call, which has 20 ms.
    assert_eq!(device.report("a").state, PluginState::Running);
}

/// A file that takes forever to compile, and after it what the owner wants at once.
#[tokio::test]
async fn a_changed_policy_and_a_removed_file_act_before_anything_is_compiled() {
    let both = || setup().guest("a", "").guest("b", "").guest("c", "");
    // Once with a compiler, so that these three are available as native code.
    let warm = both().start().await;
    assert_eq!(warm.plugins.problems(), [""; 0]);
    drop(warm);
    let device = both().compiler_that_hangs().start().await;
    assert_eq!(device.plugins.problems(), [""; 0]);
    let slow = never_compiled(&manifest("slow", ALL));
    // After the next change it is being compiled, or about to be.
    device.replace("00-slow.wasm", &slow);

    let policy = device.path("policy.toml");
    fs::write(&policy, grant_all(&["b", "c", "slow"])).unwrap();
    device
        .until("the grants of a are withdrawn", |plugins| {
            let report = plugins.report();
            let a = report.iter().find(|plugin| plugin.name == "a");
            a.is_some_and(|a| a.state == PluginState::Refused)
        })
        .await;
    let found = |path: &str| device.plugins.find(&http::Method::GET, path);
    assert!(matches!(found("/v3/a/hello"), plugins::RouteLookup::None));

    fs::remove_file(device.path("plugins/b.wasm")).unwrap();
    device
        .until("b is gone", |plugins| {
            plugins.report().iter().all(|plugin| plugin.name != "b")
        })
        .await;
    assert!(matches!(found("/v3/b/hello"), plugins::RouteLookup::None));

    fs::write(&policy, grant_all(&["a", "c", "slow"])).unwrap();
    device
        .until("a has its grants again", |plugins| {
            let report = plugins.report();
            let a = report.iter().find(|plugin| plugin.name == "a");
            a.is_some_and(|a| a.state == PluginState::Running)
        })
        .await;
    assert_eq!(device.get("/v3/c/hello").await.0, StatusCode::OK);
    // During all that time the file was neither loaded nor given up.
    let report = device.plugins.report();
    let slow = report
        .iter()
        .find(|plugin| plugin.file.ends_with("00-slow.wasm"));
    assert_eq!(slow.unwrap().state, PluginState::Loading);
}

#[tokio::test]
async fn a_runtime_that_takes_up_no_plugins_any_more_is_not_healthy() {
    let device = setup().guest("a", "").start().await;
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    assert_eq!(device.plugins.runtime_problems(), Vec::<String>::new());
    device.breaks.store(true, SeqCst);
    device.replace("a.wasm", &version(7));
    device
        .until("its end shows", |plugins| {
            let problems = plugins.runtime_problems();
            problems == ["the task that loads changed plugins has ended"]
        })
        .await;
    // Loaded plugins stay in use.
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
}
