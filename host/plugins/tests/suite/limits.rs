//! Each limit, broken by one plugin while another keeps answering.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use device_types::PluginLimits;
use http::StatusCode;
use plugins::PendingUpdate;

use crate::fixture::{Fixture, Setup, failure, grant_all, led, setup};

const LIMITS: &str =
    "[limits]\nmemory_mib = 4\ncpu_ms = 100\nwall_ms = 30000\nbody_kib = 100\nconcurrency = 2\n";

/// The message of the guest's panic, in the first of its lines, and its place.
const PANIC: &str = "this plugin panics (tests/plugin-guests/src/misbehave.rs:14:20)";

/// Starts a device with a plugin with these limits, and a neighbour.
async fn device() -> Fixture {
    device_with(LIMITS).await
}

async fn device_with(limits: &str) -> Fixture {
    setup().guest("bad", limits).guest("good", "").start().await
}

/// Breaks a limit again and again; the neighbour's calls all succeed at the same time.
async fn broken_beside_a_neighbour(
    path: &str,
    status: StatusCode,
    message: &str,
    last_error: &str,
) {
    broken_with(LIMITS, path, status, message, last_error).await;
}

/// `last_error` is the report for the plugin's author.
async fn broken_with(
    limits: &str,
    path: &str,
    status: StatusCode,
    message: &str,
    last_error: &str,
) {
    let device = Arc::new(device_with(limits).await);
    let done = Arc::new(AtomicBool::new(false));
    let neighbour = tokio::spawn({
        let (device, done) = (Arc::clone(&device), Arc::clone(&done));
        async move {
            let mut answers = 0;
            while !done.load(SeqCst) || answers == 0 {
                assert_eq!(
                    device.get("/v3/good/hello").await,
                    (StatusCode::OK, "hello".to_owned())
                );
                answers += 1;
                tokio::task::yield_now().await;
            }
        }
    });
    for _ in 0..3 {
        assert_eq!(
            device.get(&format!("/v3/bad/{path}")).await,
            (status, failure(message))
        );
    }
    done.store(true, SeqCst);
    neighbour.await.unwrap();
    let report = device.report("bad");
    assert_eq!(
        (report.calls, report.failures, report.last_error.as_deref()),
        (3, 3, Some(last_error))
    );
    assert_eq!(device.report("good").failures, 0);
    assert_eq!(device.get("/v3/bad/hello").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_plugin_that_fills_its_memory_is_ended() {
    broken_beside_a_neighbour(
        "memory",
        StatusCode::INTERNAL_SERVER_ERROR,
        "plugin `bad` needed more than its 4 MiB of memory",
        "plugin `bad` needed more than its 4 MiB of memory (the limit `memory_mib`, which may be 32 at most)",
    )
    .await;
}

#[tokio::test]
async fn the_report_has_the_limits_in_force() {
    let manifest = "[limits]\nmemory_mib = 8\nwall_ms = 500\nconcurrency = 16\n";
    let policy = grant_all(&["a"]) + "limits = { wall_ms = 700, body_kib = 9 }\n";
    let device = setup()
        .guest("a", manifest)
        .policy(&policy)
        .strange_file("b.wasm", b"no component")
        .slots(16)
        .start()
        .await;
    let limits = device.report("a").limits.unwrap();
    // Half of the device's places is the most for one plugin.
    let expected = PluginLimits {
        memory_mib: 8,
        cpu_ms: 1000,
        wall_ms: 700,
        body_kib: 9,
        concurrency: 8,
    };
    assert_eq!(limits, expected);
    assert_eq!(device.report("b").limits, None, "it is not in use");
}

#[tokio::test]
async fn a_plugin_that_loops_is_ended() {
    broken_beside_a_neighbour(
        "spin",
        StatusCode::GATEWAY_TIMEOUT,
        "plugin `bad` used more than its 100 ms of CPU time",
        "plugin `bad` used more than its 100 ms of CPU time (the limit `cpu_ms`, which may be 60000 at most)",
    )
    .await;
}

#[tokio::test]
async fn a_plugin_that_waits_too_long_is_ended() {
    let limits = "[limits]\nwall_ms = 400\n";
    let message = "plugin `bad` did not answer within 400 ms";
    let last_error = format!("{message} (the limit `wall_ms`, which may be 900000 at most)");
    broken_with(
        limits,
        "sleep",
        StatusCode::GATEWAY_TIMEOUT,
        message,
        &last_error,
    )
    .await;
}

#[tokio::test]
async fn a_plugin_that_panics_is_ended() {
    broken_beside_a_neighbour(
        "panic",
        StatusCode::INTERNAL_SERVER_ERROR,
        "plugin `bad` failed: wasm trap: wasm `unreachable` instruction executed",
        &format!("plugin `bad` panicked: {PANIC}"),
    )
    .await;
}

#[tokio::test]
async fn a_developers_caller_gets_to_know_what_its_author_does() {
    let device = setup().guest("bad", LIMITS).allow_unpinned().start().await;
    for (path, status, message) in [
        (
            "panic",
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("plugin `bad` panicked: {PANIC}"),
        ),
        (
            "spin",
            StatusCode::GATEWAY_TIMEOUT,
            "plugin `bad` used more than its 100 ms of CPU time (the limit `cpu_ms`, which may be 60000 at most)"
                .to_owned(),
        ),
    ] {
        let expected = (status, failure(&message));
        assert_eq!(device.get(&format!("/v3/bad/{path}")).await, expected);
    }
    let message = "the request's body is larger than the 100 KiB that plugin `bad` accepts (the limit `body_kib`, which may be \
                   16384 at most)";
    let expected = (StatusCode::PAYLOAD_TOO_LARGE, failure(message));
    assert_eq!(
        device.post("/v3/bad/count", vec![0; 200 << 10]).await,
        expected
    );
}

#[tokio::test]
async fn a_plugin_that_calls_itself_for_ever_is_ended() {
    let device = device().await;
    let (status, body) = device.get("/v3/bad/stack").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{body}");
    assert!(body.contains("plugin `bad` failed: wasm trap: "), "{body}");
    assert!(body.contains("stack"), "{body}");
    // Which function it was is for the author, not for callers.
    assert!(!body.contains("recurse"), "{body}");
    let report = device.report("bad");
    let last_error = report.last_error.unwrap_or_default();
    let function = "misbehave::recurse`";
    assert!(last_error.ends_with(function), "{last_error}");
    assert_eq!(device.get("/v3/bad/hello").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_plugin_that_exits_is_a_failure() {
    let device = device().await;
    let (status, body) = device.get("/v3/bad/exit").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{body}");
    let what = "plugin `bad` failed: it ended itself (`process::exit`); return an error instead";
    assert!(body.contains(what), "{body}");
}

/// What a guest passes at once is copied while none of its code runs, so that no other limit ends it.
#[tokio::test]
async fn the_error_names_a_value_that_is_too_large_for_one_call() {
    let device = device_with("[limits]\nmemory_mib = 32\n").await;
    let (fits, exceeds) = ((2 << 20) - 100, [(2 << 20) + 1, 16 << 20]);
    let message = "plugin `bad` passed more than 2048 KiB to the host at once: the body of its answer may have 1048576 \
                   bytes (the limit `body_kib`, which may be 16384 at most), and it must pass less in each call";
    for path in ["large-answer?bytes=", "large-line?bytes=", "store?set="] {
        for bytes in exceeds {
            let of_bytes = format!("/v3/bad/{path}{bytes}");
            let answer = device.get_with_room(&of_bytes).await;
            let expected = (StatusCode::BAD_GATEWAY, failure(message));
            assert_eq!(answer, expected, "{path}{bytes}");
        }
        assert_eq!(device.report("bad").last_error.as_deref(), Some(message));
        let (_, body) = device.get(&format!("/v3/bad/{path}{fits}")).await;
        assert_ne!(body, failure(message), "{path}{fits}");
    }
    assert_eq!(device.get("/v3/good/hello").await.0, StatusCode::OK);
}

/// The limit for answers leaves room for what else an answer has.
#[tokio::test]
async fn an_answer_of_the_longest_body_is_passed_and_the_next_one_is_a_502() {
    let policy = grant_all(&["bad"]) + "limits = { memory_mib = 32, body_kib = 16384 }\n";
    let setup = setup().guest("bad", "").policy(&policy);
    let device = setup.start().await;
    let most = 16 << 20;
    let (status, body) = device
        .get(&format!("/v3/bad/large-answer?bytes={most}"))
        .await;
    assert_eq!((status, body.len()), (StatusCode::OK, most));
    let more = most + (1 << 20);
    for (bytes, what) in [
        (
            most + 1,
            "gave a bad answer: 16777217 bytes, more than its 16777216",
        ),
        (
            more,
            "passed more than 17408 KiB to the host at once: the body of its answer may have 16777216 bytes",
        ),
    ] {
        let path = format!("/v3/bad/large-answer?bytes={bytes}");
        let (status, body) = device.get_with_room(&path).await;
        assert_eq!(status, StatusCode::BAD_GATEWAY, "{body}");
        let message = format!("plugin `bad` {what} (the limit `body_kib`");
        assert!(body.contains(&message), "{body}");
    }
}

/// What a guest holds in the host is also limited.
#[tokio::test]
async fn a_plugin_that_begins_too_much_at_once_is_ended() {
    // Enough time to get there on a busy machine.
    let device = device_with(&LIMITS.replace("cpu_ms = 100\n", "cpu_ms = 1000\n")).await;
    let (status, body) = device.get("/v3/bad/many-tasks").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{body}");
    assert!(body.contains("plugin `bad` failed: "), "{body}");
}

#[tokio::test]
async fn waiting_costs_no_cpu_time() {
    let device = setup().guest("a", "[limits]\ncpu_ms = 50\n").start().await;
    for _ in 0..3 {
        assert_eq!(
            device.get("/v3/a/sleep?ms=150").await,
            (StatusCode::OK, "slept".to_owned())
        );
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let device = device().await;
    assert_eq!(
        device.post("/v3/bad/count", vec![0; 100 << 10]).await.1,
        "stream 102400"
    );
    let expected =
        failure("the request's body is larger than the 100 KiB that plugin `bad` accepts");
    assert_eq!(
        device.post("/v3/bad/count", vec![0; (100 << 10) + 1]).await,
        (StatusCode::PAYLOAD_TOO_LARGE, expected)
    );
    // The caller's fault, not the plugin's.
    assert_eq!(device.report("bad").failures, 0);
}

#[tokio::test]
async fn one_call_too_many_waits_and_is_then_refused() {
    let device = setup()
        .guest("a", "[limits]\nconcurrency = 2\nwall_ms = 60000\n")
        .guest("b", "")
        .start()
        .await;
    let device = Arc::new(device);
    let hold = |ms: u32| {
        let device = Arc::clone(&device);
        tokio::spawn(async move { device.get(&format!("/v3/a/sleep?ms={ms}")).await })
    };
    let held = [hold(60_000), hold(60_000)];
    device
        .until("both calls are under way", |plugins| {
            plugins.report()[0].calls == 2
        })
        .await;
    let request = http::Request::get("/v3/a/hello")
        .body(http_body_util::Full::<bytes::Bytes>::default())
        .unwrap();
    let answer = device.call(request).await;
    assert_eq!(answer.headers()["retry-after"], "1");
    let message = "there is no room for plugin `a` now: it takes 2 calls at a time";
    let expected = (StatusCode::SERVICE_UNAVAILABLE, failure(message));
    assert_eq!(crate::fixture::text(answer).await, expected);
    assert_eq!(device.get("/v3/b/hello").await.0, StatusCode::OK);
    assert_eq!(device.report("a").failures, 0);
    // A caller that leaves frees its place at once.
    for call in held {
        call.abort();
        let _ = call.await;
    }
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    // A place that becomes free within the second is waited for.
    let held = [hold(200), hold(200)];
    device
        .until("both calls are under way", |plugins| {
            plugins.report()[0].calls == 6
        })
        .await;
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    for call in held {
        assert_eq!(call.await.unwrap().0, StatusCode::OK);
    }
}

/// One plugin cannot take all slots, and spares give way.
#[tokio::test]
async fn a_busy_plugin_leaves_slots_to_others() {
    let device = setup()
        .guest("a", "[limits]\nconcurrency = 16\nwall_ms = 60000\n")
        .guest("b", "")
        .guest("c", "")
        .slots(4)
        .start()
        .await;
    for _ in 0..3 {
        assert_eq!(device.get("/v3/b/hello").await.0, StatusCode::OK);
    }
    let device = Arc::new(device);
    let held: Vec<_> = (0..8)
        .map(|_| {
            let device = Arc::clone(&device);
            tokio::spawn(async move { device.get("/v3/a/sleep?ms=60000").await })
        })
        .collect();
    device
        .until("all are under way", |plugins| {
            plugins.report()[0].calls == 8
        })
        .await;
    // The two remaining slots hold spares of `b`, and then of the plugin that was called last.
    for _ in 0..10 {
        for path in ["/v3/b/hello", "/v3/c/hello"] {
            assert_eq!(device.get(path).await.0, StatusCode::OK);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    for call in held {
        call.abort();
    }
}

/// In the configuration of a plugin: each instance writes a line when it starts.
const SAYS_SO: &str = "names-its-caller-at-start = true\n";
/// The same, and each instance starts with 13 MiB.
const TAKES_MEMORY: &str = "names-its-caller-at-start = true\ntakes-memory-at-start = true\n";

/// Adds the plugin `gate`, which postpones each update by 30 seconds. Grants it that, and the others their imports.
/// `config` continues its configuration.
fn with_gate(setup: Setup, others: &[&str], config: &str) -> Setup {
    let gate = "provides = [\"events\"]\nevents = [\"update-gate\"]\n";
    let policy = grant_all(others) + &grant_all(&["gate"]) + "events = [\"update-gate\"]\n";
    let config = format!("[gate]\ngate-postpones = true\n{config}");
    setup.guest("gate", gate).policy(&policy).config(&config)
}

/// Asks the plugin `gate` about an update, which must reach it.
async fn reach_gate(device: &Fixture) {
    let update = PendingUpdate {
        app_id: 1,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec!["main".to_owned()],
        running_commit: None,
        target_commit: None,
    };
    let postponement = device.plugins.postponement(&update).await.unwrap();
    let answer = (&*postponement.reason, postponement.delay.as_secs());
    assert_eq!(answer, ("the press\\nFORGED INFO is running", 30));
}

/// Waits until this many instances of the plugin have started, which say so.
async fn until_started(device: &Fixture, plugin: &str, count: usize) {
    device
        .until("they have started", |plugins| {
            let log = plugins.log(plugin, 0).unwrap_or_default();
            let messages = log.lines.iter().map(|line| &line.message);
            let started = messages.filter(|message| message.starts_with("started for "));
            started.count() >= count
        })
        .await;
}

/// Calls the plugin for the first time, and waits for its spares.
async fn call_and_prepare(device: &Fixture, plugin: &str) {
    let (status, _) = device.get(&format!("/v3/{plugin}/hello")).await;
    assert_eq!(status, StatusCode::OK);
    until_started(device, plugin, 3).await;
}

/// Nobody calls a plugin again for an event that found no place.
#[tokio::test]
async fn spares_give_their_places_to_gates_and_actions() {
    let setup = setup()
        .guest("a", "[limits]\nwall_ms = 60000\n")
        .guest("b", "")
        .slots(4);
    let config = format!("[a]\n{SAYS_SO}[b]\n{SAYS_SO}");
    let device = with_gate(setup, &["a", "b"], &config).start().await;
    let device = Arc::new(device);
    let held = [(); 2].map(|()| {
        let device = Arc::clone(&device);
        tokio::spawn(async move { device.get("/v3/a/sleep?ms=60000").await })
    });
    until_started(&device, "a", 2).await;
    // The two remaining places hold spares of `b`.
    call_and_prepare(&device, "b").await;
    reach_gate(&device).await;
    for call in held {
        call.abort();
    }
}

/// Of the 32 MiB that the plugin has, two spares take 26.
#[tokio::test]
async fn a_gate_is_called_although_its_own_spares_fill_its_memory() {
    let device = with_gate(setup(), &[], TAKES_MEMORY).start().await;
    call_and_prepare(&device, "gate").await;
    for count in 4..8 {
        reach_gate(&device).await;
        // Requests find as many spares as before.
        until_started(&device, "gate", count).await;
    }
}

/// Two plugins have 52 of the 64 MiB for spares: the next instance finds room for a start like most, but not for its own.
#[tokio::test]
async fn spares_give_their_memory_to_whatever_a_start_takes() {
    let others = ["a", "b", "c"].map(|name| format!("[{name}]\n{TAKES_MEMORY}"));
    let config = TAKES_MEMORY.to_owned() + &others.concat();
    for caller in ["gate", "c"] {
        let setup = setup().guest("a", "").guest("b", "").guest("c", "");
        let device = with_gate(setup, &["a", "b", "c"], &config).start().await;
        call_and_prepare(&device, "a").await;
        call_and_prepare(&device, "b").await;
        if caller == "gate" {
            reach_gate(&device).await;
        } else {
            assert_eq!(device.get("/v3/c/hello").await.0, StatusCode::OK);
        }
    }
}

#[tokio::test]
async fn the_policy_decides_over_the_manifest() {
    let device = setup().guest("bad", LIMITS);
    let policy = grant_all(&["bad"]) + "limits = { cpu_ms = 5000, wall_ms = 2000 }\n";
    let device = device.policy(&policy).start().await;
    assert_eq!(
        device.get("/v3/bad/sleep").await.1,
        failure("plugin `bad` did not answer within 2000 ms")
    );
    let (status, _) = device.get("/v3/bad/memory").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn a_flood_of_lines_does_not_hold_up_the_call() {
    let device = device_with("").await;
    assert_eq!(
        device.get("/v3/bad/log").await,
        (StatusCode::OK, "logged".to_owned())
    );
}

#[tokio::test]
async fn the_message_of_an_error_is_bounded() {
    let device = device_with("").await;
    let (status, body) = device.get("/v3/bad/long-error").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    // Each byte is six in JSON.
    assert_eq!(body, failure(&"\u{1}".repeat(4096)));
}

/// Instances are prepared outside the path of requests; this runs what a plugin does when it starts.
#[tokio::test]
async fn a_plugin_whose_start_loops_keeps_no_other_from_answering() {
    let limits = "[limits]\nmemory_mib = 4\ncpu_ms = 60000\nwall_ms = 900000\n";
    let setup = setup().slots(8);
    let leds = setup.root.path().join("leds");
    let config = format!(
        "[bad]\nled_folder = \"{}\"\nloops-at-start = true\n",
        leds.display()
    );
    let setup = setup.config(&config).guest("bad", limits);
    let device = setup.guest("good", "").start().await;
    let ok = |what: &str| (StatusCode::OK, what.to_owned());
    assert_eq!(device.get("/v3/bad/hello").await, ok("hello"));
    assert_eq!(device.get("/v3/good/hello").await, ok("hello"));

    led(&leds, "loop");
    // A prepared instance still answers. After that, a call starts its own instance, and its client has no patience.
    let patience = Duration::from_secs(2);
    while let Ok(answer) = tokio::time::timeout(patience, device.get("/v3/bad/hello")).await {
        assert_eq!(answer, ok("hello"));
    }
    // More calls than there are places.
    for _ in 0..50 {
        assert_eq!(device.get("/v3/good/hello").await, ok("hello"));
    }
    assert_eq!(device.plugins.runtime_problems(), Vec::<String>::new());

    std::fs::remove_dir_all(leds.join("loop")).unwrap();
    for _ in 0..5 {
        assert_eq!(device.get("/v3/bad/hello").await, ok("hello"));
        assert_eq!(device.get("/v3/good/hello").await, ok("hello"));
    }
}

/// A file that is pinned by its digest, whose manifest asks for everything there is.
#[tokio::test]
async fn only_the_policy_raises_limits_above_the_defaults() {
    let most = "[limits]\nmemory_mib = 32\ncpu_ms = 60000\nwall_ms = 900000\nconcurrency = 16\n";
    let file = crate::fixture::plugin(&crate::fixture::manifest(
        "a",
        &format!("{}\n{most}", crate::fixture::ALL),
    ));
    let section = format!(
        "{}sha256 = [\"{}\"]\nroutes = [\"/v3/a/*\"]\n",
        grant_all(&["a"]),
        compiled_code::digest(&file)
    );
    let setup = setup().strange_file("a.wasm", &file).policy(&section);
    let device = setup.start().await;
    let needed = |mib: u32| {
        failure(&format!(
            "plugin `a` needed more than its {mib} MiB of memory"
        ))
    };
    assert_eq!(device.get("/v3/a/memory").await.1, needed(16));

    let given = format!("{section}limits = {{ memory_mib = 24 }}\n");
    std::fs::write(device.path("policy.toml"), given).unwrap();
    let mut last = device.get("/v3/a/memory").await.1;
    while last == needed(16) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        last = device.get("/v3/a/memory").await.1;
    }
    assert_eq!(last, needed(24));
}

/// A board with little memory, of which plugins get 64 MiB.
#[tokio::test]
async fn plugins_together_have_so_much_memory_and_one_has_half_of_it() {
    let limits = "[limits]\nmemory_mib = 32\nwall_ms = 900000\nconcurrency = 16\n";
    let device = setup()
        .guest("bad", limits)
        .guest("worse", limits)
        .guest("good", "")
        .slots(64)
        .start()
        .await;
    let device = Arc::new(device);
    assert_eq!(device.get("/v3/good/hello").await.0, StatusCode::OK);
    // It tries again when there is no room: the calls below also use some of it for a moment.
    let hold = |plugin: &str, mib: u32| {
        let (device, path) = (
            Arc::clone(&device),
            format!("/v3/{plugin}/hold?mib={mib}&ms=600000"),
        );
        tokio::spawn(async move {
            while device.get(&path).await.0 == StatusCode::SERVICE_UNAVAILABLE {
                tokio::task::yield_now().await;
            }
        })
    };
    // 26 MiB and what an instance starts with, so that another 12 MiB are too much for it.
    let held = hold("bad", 26);
    device
        .until("it holds memory", |plugins| plugins.report()[0].calls == 1)
        .await;
    let refused = refusal(&device, "/v3/bad/hold?mib=12&ms=1").await;
    let of_one =
        "there is no room for plugin `bad` now: its calls may use 32 MiB of memory in total";
    let expected = (StatusCode::SERVICE_UNAVAILABLE, failure(of_one));
    assert_eq!(refused, expected);
    // It is not the plugin's fault, and others have room.
    assert_eq!(device.report("bad").failures, 0);
    assert_eq!(device.get("/v3/good/hold?mib=8&ms=1").await.1, "held 8");

    let held = [held, hold("worse", 26)];
    let refused = refusal(&device, "/v3/good/hold?mib=14&ms=1").await;
    let of_all =
        "there is no room for plugin `good` now: all plugins may use 64 MiB of memory in total";
    let expected = (StatusCode::SERVICE_UNAVAILABLE, failure(of_all));
    assert_eq!(refused, expected);
    assert_eq!(device.get("/v3/good/hello").await.0, StatusCode::OK);

    // The memory is given back, and the policy may grant more.
    for call in held {
        call.abort();
        let _ = call.await;
    }
    until_room(&device, "/v3/good/hold?mib=14&ms=1").await;
    let policy = std::fs::read_to_string(device.path("policy.toml")).unwrap();
    let more = format!("{policy}[bounds]\nmemory_mib = 128\n");
    std::fs::write(device.path("policy.toml"), more).unwrap();
    let held = hold("bad", 26);
    until_room(&device, "/v3/bad/hold?mib=20&ms=1").await;
    held.abort();
}

/// Returns the first answer to calls of `path` that is a refusal.
async fn refusal(device: &Fixture, path: &str) -> (StatusCode, String) {
    let calls = async {
        loop {
            let answer = device.get(path).await;
            if answer.0 != StatusCode::OK {
                return answer;
            }
        }
    };
    let answer = tokio::time::timeout(MINUTE, calls).await;
    answer.unwrap_or_else(|_| panic!("{path} was never refused"))
}

/// Waits until a call of `path` has room.
async fn until_room(device: &Fixture, path: &str) {
    let calls = async {
        loop {
            let answer = device.get(path).await;
            if answer.0 == StatusCode::OK {
                return;
            }
            assert_eq!(answer.0, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.1);
        }
    };
    let outcome = tokio::time::timeout(MINUTE, calls).await;
    outcome.unwrap_or_else(|_| panic!("there was never room for {path}"));
}

const MINUTE: Duration = Duration::from_secs(60);
