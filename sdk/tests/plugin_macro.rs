//! The macro as a plugin's crate uses it: from another crate, under this workspace's lints.

use futures::FutureExt;
use plugin_manifest::Manifest;
use supervisor_sdk::bindings::endpoint::platform::supervisor::types as wit;
use supervisor_sdk::boot_config::{self, Comparison, Setting};
use supervisor_sdk::os_update::{self, Status};
use supervisor_sdk::proxy_redirector::{self, Redirection, State};
use supervisor_sdk::{Error, Path, Request};

mod full {
    // In an unusual order, with and without commas, and with names in both spellings.
    supervisor_sdk::plugin! {
        limits: { memory_mib: 16, wall_ms: 5000 }
        boot-config => super::Firmware
        boards: ["acme-*", "pine"],
        license: "Apache-2.0",
        routes: {
            GET "/v3/hello/:name" => super::hello,
            POST "/v3/hello/:name" => super::hello_again,
            GET "/v3/request" => super::request,
        }
        identify => super::blink
        description: "Says \"hello\""
        capabilities: {
            device => "says \"which\" device answered",
            host_name => "says the host's name",
            proxy-redirector => "asks whether there is a proxy",
        }
        os-update => super::Slots
        proxy_redirector => super::Redirector,
    }
}

async fn hello(Path(name): Path<String>) -> String {
    format!("hello {name}")
}

async fn hello_again(Path(name): Path<String>) -> Result<String, Error> {
    Err(Error::conflict(format_args!("`{name}` was here before")))
}

/// Has the name of a variable in the code that the macro writes.
async fn request(numbers: Result<Path<Vec<String>>, Error>, request: Request) -> String {
    let count = numbers.map_or(0, |Path(numbers)| numbers.len());
    format!("{} {count}", request.method())
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

struct Slots;

impl os_update::Provider for Slots {
    async fn status() -> Result<Status, String> {
        Ok(Status::default())
    }

    async fn stage(_: String, _: String) -> Result<(), String> {
        Ok(())
    }

    async fn activate() -> Result<(), String> {
        Ok(())
    }

    async fn commit() -> Result<(), String> {
        Ok(())
    }

    async fn roll_back() -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn the_manifest_says_what_the_macro_was_given() {
    let text = str::from_utf8(full::Plugin::manifest()).unwrap();
    expect_test::expect![[r#"
        name = "supervisor-sdk"
        version = "0.1.0"
        interface = "1.4.0"
        description = 'Says "hello"'
        licence = "Apache-2.0"
        provides = ["boot-config", "identify", "os-update", "proxy-redirector"]
        boards = ["acme-*", "pine"]

        [limits]
        memory_mib = 16
        wall_ms = 5000

        [[capabilities]]
        name = "device"
        reason = 'says "which" device answered'

        [[capabilities]]
        name = "host-name"
        reason = "says the host's name"

        [[capabilities]]
        name = "proxy-redirector"
        reason = "asks whether there is a proxy"

        [[routes]]
        method = "GET"
        path = "/v3/hello/:name"

        [[routes]]
        method = "POST"
        path = "/v3/hello/:name"

        [[routes]]
        method = "GET"
        path = "/v3/request"
    "#]]
    .assert_eq(text);
    let manifest = Manifest::parse(text).unwrap();
    assert_eq!(manifest.routes.len(), 3);
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
    assert_eq!(call("GET", "/v3/request"), Ok((200, b"GET 1".to_vec())));
    assert_eq!(call("GET", "/v3/other").unwrap_err().0, 500);
}
