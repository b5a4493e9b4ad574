//! Calls that need a grant.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::{Instant, SystemTime};

use crate::bindings::platform::supervisor::proxy_types::{Proxy, ProxyKind, Redirection};
use crate::bindings::platform::supervisor::types::{Error, Request, Response};
use crate::bindings::platform::supervisor::{
    config, device, identify, led, proxy_redirector, store, timer, units,
};
use crate::{argument, error, milliseconds, text};

pub(crate) async fn handle(what: &str, request: &Request) -> Result<Response, Error> {
    match what {
        "config" => text(config::json()),
        "caller" => text(crate::caller()),
        "device" => {
            let identity = device::identity();
            text(format!(
                "{} {} {} {}",
                identity.uuid, identity.name, identity.device_type, identity.arch
            ))
        }
        "device-state" => text(device::state()),
        "clock" => {
            let begun = Instant::now();
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap();
            text(format!("{} {}", now.as_secs(), begun.elapsed().as_secs()))
        }
        "random" => text(RandomState::new().build_hasher().finish().to_string()),
        "environment" => text(format!(
            "{:?} {:?}",
            std::env::vars().collect::<Vec<_>>(),
            std::env::args()
        )),
        "read" => reply(fs::read_to_string(path(request))),
        "list" => reply(fs::read_dir(path(request)).map(|entries| {
            let mut names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names.join(" ")
        })),
        "write" => reply(fs::write(path(request), "written").map(|()| "done".to_owned())),
        "remove" => reply(fs::remove_file(path(request)).map(|()| "done".to_owned())),
        "store" => kept(request).await,
        "leds" => match led::names() {
            Ok(names) => text(names.join(" ")),
            Err(what) => error(500, format!("{what:?}")),
        },
        "identify" => match identify::identify().await {
            Ok(()) => text("identified"),
            Err(what) => error(500, what),
        },
        "proxy" => reply_proxy(proxy_redirector::get().await),
        "set-proxy" => {
            let redirection = Redirection {
                proxy: Proxy {
                    kind: ProxyKind::Socks5,
                    address: argument(request, "address").unwrap_or("there").to_owned(),
                    port: 1080,
                    login: None,
                    password: None,
                },
                dns: None,
            };
            reply_proxy(proxy_redirector::set(Some(redirection)).await)
        }
        "proxy-circle" => reply_proxy(proxy_redirector::no_proxy().await),
        "unit" => match units::state(name(request)).await {
            Ok(state) => text(format!(
                "{} {} {}",
                state.load_state, state.active_state, state.sub_state
            )),
            Err(what) => error(403, format!("{what:?}")),
        },
        "restart-unit" => match units::restart(name(request)).await {
            Ok(()) => text("restarted"),
            Err(what) => error(403, format!("{what:?}")),
        },
        "light" | "light-and-panic" => light(what, request).await,
        _ => error(404, format!("nothing called {what}")),
    }
}

fn reply_proxy<T: std::fmt::Debug, E: std::fmt::Debug>(
    outcome: Result<T, E>,
) -> Result<Response, Error> {
    match outcome {
        Ok(answer) => text(format!("{answer:?}")),
        Err(what) => error(500, format!("{what:?}")),
    }
}

/// Returns the value of `?path=`.
fn path(request: &Request) -> &str {
    argument(request, "path").unwrap_or("/")
}

/// Returns the value of `?name=`.
fn name(request: &Request) -> String {
    argument(request, "name").unwrap_or_default().to_owned()
}

fn reply(outcome: std::io::Result<String>) -> Result<Response, Error> {
    match outcome {
        Ok(content) => text(content),
        Err(what) => error(403, format!("{:?}", what.kind())),
    }
}

/// `?set=` sets the key `k`, without it the key is read. `?add=` increments the number of the key `count`, with
/// `naively` in a way that loses concurrent changes; `?for=` sets the key `k` for this many milliseconds.
async fn kept(request: &Request) -> Result<Response, Error> {
    if let Some(how) = argument(request, "add") {
        return count(how).await;
    }
    if let Some(milliseconds) = argument(request, "for") {
        let milliseconds = milliseconds.parse().unwrap_or(0);
        return match store::set_for("k".to_owned(), b"v".to_vec(), milliseconds).await {
            Ok(()) => text("kept for a time"),
            Err(what) => error(400, format!("{what:?}")),
        };
    }
    if let Some(value) = argument(request, "set") {
        let size = value.parse().unwrap_or(0);
        return match store::set("k".to_owned(), vec![b'v'; size]).await {
            Ok(()) => text("kept"),
            Err(what) => error(400, format!("{what:?}")),
        };
    }
    let value = store::get("k".to_owned()).await.unwrap();
    let keys = store::keys(String::new()).await.unwrap();
    text(format!("{:?} {keys:?}", value.map(|value| value.len())))
}

async fn count(how: &str) -> Result<Response, Error> {
    loop {
        let before = store::get("count".to_owned()).await.unwrap();
        let number = before.as_deref().map_or(0, |text| {
            std::str::from_utf8(text).unwrap().parse().unwrap()
        });
        let after: u32 = number + 1;
        let value = after.to_string().into_bytes();
        let is_set = if how == "naively" {
            store::set("count".to_owned(), value).await.map(|()| true)
        } else {
            store::compare_and_set("count".to_owned(), before, Some(value), None).await
        };
        match is_set {
            Ok(true) => return text(after.to_string()),
            Ok(false) => {}
            Err(what) => return error(400, format!("{what:?}")),
        }
    }
}

/// Lights the LED of `?name=` for `?ms=`.
async fn light(what: &str, request: &Request) -> Result<Response, Error> {
    match led::Light::open(argument(request, "name").unwrap_or("ACT")) {
        Ok(light) => {
            light.set(1).unwrap();
            assert!(what != "light-and-panic", "with the LED in hand");
            timer::sleep(milliseconds(request)).await;
            text(format!("lit at most {}", light.max()))
        }
        Err(what) => error(409, format!("{what:?}")),
    }
}
