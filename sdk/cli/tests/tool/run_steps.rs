//! `run`: what only the device or another plugin does on a device: events, calls of actions, and `POST /v1/blink`.

use std::fs;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tests::{guest, until};

use crate::author::{Author, RunningCommand};
use crate::run::address;
use crate::test::RAUC;

/// A device of `run` with a component.
struct ServedComponent {
    client: Client,
    base: String,
    running: RunningCommand,
    author: Author,
}

impl ServedComponent {
    async fn new(component: &str, device: &str) -> ServedComponent {
        let author = Author::new();
        author.write("device.toml", device);
        let component = guest(component).display().to_string();
        let words = format!("run {component} --listen 127.0.0.1:0 --state-dir state");
        let running = author.start_in("", &words);
        ServedComponent {
            client: tests::client(),
            base: address(&running).await,
            running,
            author,
        }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    /// Performs steps, each of which must have this answer.
    async fn check(&self, path: &str, steps: impl IntoIterator<Item = (Value, Value)>) {
        for (step, expected) in steps {
            let answer = self.send(Method::POST, path, &step).await;
            assert_eq!(answer, (200, expected), "{step}");
        }
    }

    /// Performs a step that must be refused with a message that contains this.
    async fn check_refused(&self, path: &str, step: Value, expected: &str) {
        let (status, answer) = self.send(Method::POST, path, &step).await;
        assert_eq!(status, 400, "{step}: {answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains(expected), "{expected} in {message}");
    }
}

#[tokio::test]
async fn a_plugins_own_actions_are_called_while_it_is_served() {
    let rails = ServedComponent::new("acme_rails", "").await;
    let set = |rail: &str| json!({ "name": "set", "json": { "name": rail, "on": true } });
    let by_panel = json!({
        "name": "set", "base64": "eyJuYW1lIjoiNXYiLCJvbiI6ZmFsc2V9", "plugin": "rail-panel", "caller": "local-mode"
    });
    let listed = json!([{ "name": "3v3", "on": false }, { "name": "5v", "on": false }]);
    rails
        .check(
            "/@run/action",
            [
                (set("5v"), json!({ "json": "other-plugin" })),
                (set("12v"), json!({ "refused": "there is no rail `12v`" })),
                (by_panel, json!({ "json": "rail-panel" })),
                (json!({ "name": "list" }), json!({ "json": listed })),
            ],
        )
        .await;
    rails
        .running
        .until_printed("POST /@run/action 200 in ")
        .await;
    let line = rails.running.until_printed("action set answered in ").await;
    assert!(
        line.contains(" ms of 1000 ms processor time, ") && line.ends_with(" of 16 MiB)"),
        "{line}"
    );
    for (step, expected) in [
        (
            json!({ "name": "reset" }),
            "add `reset` to [actions] in plugin.toml, which has only `list`, `set`",
        ),
        (
            json!({ "os_update": "status" }),
            "the plugin does not provide it: add `os-update` to [provides]",
        ),
        (
            json!({ "name": "set", "os_update": "status" }),
            "it has `name` and `os_update`, but it is one call",
        ),
        (json!({ "action": "set" }), "there is no key `action` here"),
    ] {
        rails.check_refused("/@run/action", step, expected).await;
    }
}

#[tokio::test]
async fn functions_of_typed_actions_are_called_while_their_provider_is_served() {
    let rauc = ServedComponent::new("rauc_update", RAUC).await;
    let status = json!({ "running": "1.0.0", "staged": "2.0.0", "committed": true });
    let failed = "RAUC: the boot loader is being written (org.acme.Error.Busy)";
    rauc.check(
        "/@run/action",
        [
            (json!({ "os_update": "status" }), json!({ "json": status })),
            (
                json!({ "os_update": "activate" }),
                json!({ "failed": failed }),
            ),
        ],
    )
    .await;

    let board = "[device]\ntype = \"raspberrypi4-64\"\n[files]\n\"/mnt/boot/config.txt\" = \"gpu_mem=64\\n\"\n[policy]\n\
                 files = [{ host = \"mnt/boot\", guest = \"/boot\", write = true }]\n";
    let board = ServedComponent::new("boot_config_txt", board).await;
    let changed = json!({ "changes": ["HOST_CONFIG_gpu_mem"], "needs_reboot": true });
    let memory = |size: &str| json!({ "HOST_CONFIG_gpu_mem": size });
    board
        .check(
            "/@run/action",
            [
                (
                    json!({ "boot_config": "get" }),
                    json!({ "json": memory("64") }),
                ),
                (
                    json!({ "boot_config": { "set": memory("128") } }),
                    json!({ "json": changed }),
                ),
                (
                    json!({ "boot_config": "get" }),
                    json!({ "json": memory("128") }),
                ),
            ],
        )
        .await;

    let proxy = "[files]\n\"/mnt/boot/system-proxy/no_proxy\" = \"10.0.0.0/8\\n\"\n[policy]\n\
                 files = [{ host = \"mnt/boot/system-proxy\", guest = \"/system-proxy\", write = true }]\n";
    let proxy = ServedComponent::new("proxy_redirector", proxy).await;
    let target = json!({ "proxy": { "kind": "socks5", "address": "10.0.0.9", "port": 1080 } });
    proxy
        .check(
            "/@run/action",
            [
                (
                    json!({ "proxy_redirector": "no-proxy" }),
                    json!({ "json": ["10.0.0.0/8"] }),
                ),
                (json!({ "proxy_redirector": { "set": target } }), json!({})),
                (
                    json!({ "proxy_redirector": "get" }),
                    json!({ "json": target }),
                ),
            ],
        )
        .await;
}

#[tokio::test]
async fn events_happen_and_gates_answer_while_a_plugin_is_served() {
    let hold = ServedComponent::new("update_hold", "").await;
    let gate = || json!({ "update_gate": { "services": ["press"] } });
    hold.check("/@run/event", [(gate(), json!({}))]).await;
    let visitors = json!({ "reason": "visitors", "seconds": 600 });
    hold.send(Method::PUT, "/v3/update-hold", &visitors).await;
    let postponed = json!({ "postpone": "visitors", "seconds": 10 });
    hold.check(
        "/@run/event",
        [
            (gate(), postponed),
            (json!({ "connection": true }), json!({})),
            (json!({ "schedule": "count-down" }), json!({})),
        ],
    )
    .await;
    for kind in ["start", "update-gate", "connection", "schedule"] {
        let line = format!("event {kind} answered in ");
        let line = hold.running.until_printed(&line).await;
        assert!(line.contains(" ms processor time, "), "{line}");
    }
    let (_, state) = hold
        .send(Method::GET, "/v3/update-hold", &Value::Null)
        .await;
    // The schedule itself may have been due as well.
    let left = state["hold"]["seconds"].as_u64().unwrap();
    assert!(left <= 590, "{left}");
    let events = state["events"].to_string();
    assert!(events.contains("connection true"), "{events}");
    for (step, expected) in [
        (
            json!({ "schedule": "nightly" }),
            "the plugin is not called for it: add `nightly` to [schedules] in plugin.toml, which has only `count-down`",
        ),
        (
            json!({ "health_gate": { "commit": "c2" } }),
            "add `health-gate` to `events` in plugin.toml",
        ),
    ] {
        hold.check_refused("/@run/event", step, expected).await;
    }
}

#[tokio::test]
async fn blink_starts_the_plugins_own_identify() {
    let device =
        "[device]\ntype = \"acme-1\"\n[leds.\"acme:green:left\"]\n[leds.\"acme:green:right\"]\n";
    let board = ServedComponent::new("board_leds", device).await;
    // As on a device, the case and a slash at the end do not matter.
    let blink = format!("{}/V1/blink/", board.base);
    let answer = board.client.post(blink).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.text().await.unwrap(), "");
    let brightness = board
        .author
        .path("state/root/sys/class/leds/acme:green:left/brightness");
    until("the LED to be lit", || async {
        let shown = fs::read_to_string(&brightness).unwrap_or_default();
        if ["", "0"].contains(&shown.trim()) {
            Err(shown)
        } else {
            Ok(())
        }
    })
    .await;
}

#[tokio::test]
async fn blink_is_answered_as_the_device_file_says_if_the_plugin_does_not_provide_identify() {
    for (component, device, expected) in [
        (
            "find_me",
            "[identify]\n",
            "the device has identified itself, as the device file says",
        ),
        (
            "find_me",
            "[identify]\nfailed = \"it is dark\"\n",
            "the device did not identify itself: it is dark",
        ),
        (
            "find_me",
            "",
            "`device.toml` has no answer in its place: add a table [identify] to it",
        ),
        (
            "greeter",
            "[identify]\n",
            "nothing shows which device this is: the plugin neither provides `identify` nor asks for it",
        ),
    ] {
        let served = ServedComponent::new(component, device).await;
        let answer = served.send(Method::POST, "/v1/blink", &Value::Null).await;
        assert_eq!(answer, (200, Value::Null), "{component} {device}");
        served.running.until_printed(expected).await;
    }
}

/// A page in the author's browser can send requests to this machine, and can make its own name resolve to it.
#[tokio::test]
async fn pages_of_other_sites_reach_nothing_of_run() {
    let rails = ServedComponent::new("acme_rails", "").await;
    let set = "{\"name\":\"set\",\"json\":{\"name\":\"5v\",\"on\":true}}";
    for (headers, path, expected) in [
        // A form, whose type needs no preflight.
        (
            vec![
                ("origin", "http://evil.example"),
                ("content-type", "text/plain"),
            ],
            "/@run/action",
            403,
        ),
        (vec![("content-type", "text/plain")], "/@run/action", 415),
        (vec![("origin", "null")], "/v1/blink", 403),
        (vec![("origin", "http://localhost:5173")], "/v1/blink", 403),
        (vec![("origin", "http://evil.example")], "/v3/rails", 403),
        // DNS rebinding, with which a page can send every type.
        (
            vec![
                ("host", "evil.example"),
                ("content-type", "application/json"),
            ],
            "/@run/action",
            403,
        ),
        (
            vec![
                ("host", "evil.example"),
                ("origin", "http://evil.example"),
                ("content-type", "application/json"),
            ],
            "/@run/event",
            403,
        ),
        (vec![("host", "evil.example")], "/v1/blink", 403),
    ] {
        let mut request = rails.client.post(format!("{}{path}", rails.base));
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(set).send().await.unwrap();
        assert_eq!(answer.status(), expected, "{path} {headers:?}");
    }
    // The preflight of a type that a form does not have.
    let preflight = rails
        .client
        .request(Method::OPTIONS, format!("{}/@run/action", rails.base))
        .header("origin", "http://evil.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type");
    let answer = preflight.send().await.unwrap();
    assert_eq!(answer.status(), 403);
    let allowed = answer.headers().get("access-control-allow-origin");
    assert_eq!(allowed, None);
    // None of these has called the plugin.
    let listed = json!([{ "name": "3v3", "on": false }, { "name": "5v", "on": false }]);
    let list = (json!({ "name": "list" }), json!({ "json": listed }));
    rails.check("/@run/action", [list]).await;
}
