//! The macro as a plugin's crate uses it: from outside, under this workspace's lints.

use futures::FutureExt;
use supervisor_sdk::bindings::endpoint::exports::platform::supervisor::handler::Guest;
use supervisor_sdk::bindings::endpoint::platform::supervisor::types as wit;
use supervisor_sdk::boot_config::{self, Comparison, Setting};
use supervisor_sdk::proxy_redirector::{self, Redirection, State};
use supervisor_sdk::{Error, Path};

mod full {
    supervisor_sdk::plugin! {
        capabilities: {
            device => "says \"which\" device answered",
            led => "shows the device to a person",
            proxy_redirector => "asks whether there is a proxy",
        }
        routes: {
            GET "/v3/hello/:name" => super::hello,
            POST "/v3/hello/:name" => super::hello_again,
        }
        identify => super::blink,
        proxy_redirector => super::Redirector,
        boot_config => super::Firmware,
        boards: ["acme-*", "pine"]
        limits: { memory_mib: 16, wall_ms: 5000 }
    }
}

mod smallest {
    supervisor_sdk::plugin! {}
}

async fn hello(Path(name): Path<String>) -> String {
    format!("hello {name}")
}

async fn hello_again(Path(name): Path<String>) -> Result<String, Error> {
    Err(Error::conflict(format_args!("`{name}` was here before")))
}

async fn blink() {}

struct Redirector;

impl proxy_redirector::Provider for Redirector {
    async fn get() -> Result<State, proxy_redirector::Error> {
        Ok(State::Direct)
    }

    async fn set(_: Option<Redirection>) -> Result<(), proxy_redirector::Error> {
        Ok(())
    }

    async fn no_proxy() -> Result<Vec<String>, proxy_redirector::Error> {
        Ok(Vec::new())
    }

    async fn set_no_proxy(_: Vec<String>) -> Result<(), proxy_redirector::Error> {
        Ok(())
    }

    async fn apply() -> Result<(), proxy_redirector::Error> {
        Ok(())
    }
}

struct Firmware;

impl boot_config::Provider for Firmware {
    async fn get() -> Result<Vec<Setting>, String> {
        Ok(Vec::new())
    }

    async fn compare(_: Vec<Setting>) -> Result<Comparison, String> {
        Ok(Comparison::default())
    }

    async fn set(_: Vec<Setting>) -> Result<Comparison, String> {
        Ok(Comparison::default())
    }
}

#[test]
fn the_manifest_says_what_the_macro_was_given() {
    let text = str::from_utf8(full::Plugin::manifest()).unwrap();
    expect_test::expect![[r#"
        name = "supervisor-sdk"
        version = "0.1.0"
        interface = "1.3.0"
        provides = ["identify", "proxy-redirector", "boot-config", ]
        boards = ["acme-*", "pine", ]

        [limits]
        memory_mib = 16
        wall_ms = 5000

        [[capabilities]]
        name = "device"
        reason = "says \"which\" device answered"

        [[capabilities]]
        name = "led"
        reason = "shows the device to a person"

        [[capabilities]]
        name = "proxy-redirector"
        reason = "asks whether there is a proxy"

        [[routes]]
        method = "GET"
        path = "/v3/hello/:name"

        [[routes]]
        method = "POST"
        path = "/v3/hello/:name"
    "#]]
    .assert_eq(text);
    let table: toml::Table = text.parse().unwrap();
    assert_eq!(table["routes"].as_array().unwrap().len(), 2);
    let smallest = str::from_utf8(smallest::Plugin::manifest()).unwrap();
    assert_eq!(smallest.parse::<toml::Table>().unwrap().len(), 4);
}

fn call(method: &str, route: &str) -> Result<(u16, Vec<u8>), (u16, String)> {
    let request = wit::Request {
        method: method.to_owned(),
        path: "/v3/hello/ada".to_owned(),
        route: route.to_owned(),
        params: vec![("name".to_owned(), "ada".to_owned())],
        query: String::new(),
        headers: Vec::new(),
        body: wit::Body::Empty,
    };
    let Some(outcome) = full::Plugin::handle(request).now_or_never() else {
        panic!("nothing here waits")
    };
    match outcome {
        Ok(wit::Response {
            status,
            body: wit::Body::Bytes(bytes),
            ..
        }) => Ok((status, bytes)),
        Ok(other) => panic!("unexpected body in {other:?}"),
        Err(error) => Err((error.status, error.message)),
    }
}

#[test]
fn each_route_reaches_its_own_function() {
    let route = "/v3/hello/:name";
    assert_eq!(call("GET", route), Ok((200, b"hello ada".to_vec())));
    assert_eq!(
        call("POST", route),
        Err((409, "`ada` was here before".to_owned()))
    );
    assert_eq!(call("GET", "/v3/other").unwrap_err().0, 500);
}
