//! `supervisor-testing`: a plugin's tests in Rust, which run in the tool's own runtime.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use supervisor_testing::{Host, Proxy, ProxyError, ProxyKind, ProxyState, Redirection};
use tests::guest;

use crate::author::{Author, TOOL};

const PAGE: &str = include_str!("../../../../docs/plugins.md");

/// The commands that the page lists for a project.
fn commands() -> &'static str {
    let (_, section) = PAGE.split_once("\n## Test with the real host\n").unwrap();
    let (_, block) = section.split_once("```sh\n").unwrap();
    block.split_once("```").unwrap().0
}

const TEST: &str = r#"
use supervisor_testing::{Host, build};

#[tokio::test]
async fn it_counts() {
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy("[plugins.rails]\ngrants = [\"store\"]")
        .start()
        .await;
    for call in [1, 2] {
        let answer = host.get("/v3/rails/Ada").await;
        assert_eq!(answer.text(), format!("Hello, Ada! This is call {call}.\n"));
    }
    assert_eq!(host.report().await[0]["calls"], 2);
}
"#;

#[test]
fn a_new_project_tests_its_plugin_in_rust() {
    let author = Author::new();
    author.new_project("rails");
    fs::create_dir(author.path("rails/tests")).unwrap();
    author.write("rails/tests/rails.rs", TEST);
    let commands = commands();
    let tested = author.shell(
        &format!("cd rails\n{commands}\ncargo test\n"),
        &[("SUPERVISOR_PLUGIN", TOOL.to_owned())],
    );
    let tested = tested.succeeds();
    assert!(
        tested.out.contains("test it_counts ... ok"),
        "{}",
        tested.out
    );
}

/// Returns the tool's answer to this line, as the device of a test.
fn started(line: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut tool = Command::new(TOOL)
        .arg("harness")
        .arg(folder.path().join("socket"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = tool.stdin.take().unwrap();
    writeln!(input, "{line}").unwrap();
    drop(input);
    let output = tool.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_harness_of_another_version_is_refused_with_the_reason() {
    for line in ["", "nonsense", "{}", "{\"version\":999}"] {
        let answer = started(line);
        let expected = "are of different versions: update both";
        assert!(answer.contains(expected), "{line}: {answer}");
    }
    let version = supervisor_testing::protocol::VERSION;
    let answer = started(&format!("{{\"version\":{version}}}"));
    assert!(
        answer.contains("the device of the test is invalid: missing field"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_test_in_rust_calls_each_function_of_a_provider_of_proxy_redirector() {
    let policy = include_str!("../../../../packaging/policy.toml");
    let host = Host::new().tool(TOOL).policy(policy);
    let host = host.plugin(guest("proxy_redirector")).start().await;
    assert_eq!(host.proxy().await, Ok(ProxyState::Direct));
    let redirection = Redirection {
        proxy: Proxy {
            kind: ProxyKind::Socks5,
            address: "10.0.0.9".to_owned(),
            port: 1080,
            login: Some("ada".to_owned()),
            password: None,
        },
        dns: None,
    };
    host.set_proxy(Some(redirection.clone())).await.unwrap();
    let written = host.proxy().await;
    assert_eq!(written, Ok(ProxyState::Redirected(redirection)));
    host.set_no_proxy(&["10.0.0.0/8", "192.0.2.7"])
        .await
        .unwrap();
    let addresses = host.no_proxy().await.unwrap();
    assert_eq!(addresses, ["10.0.0.0/8", "192.0.2.7"]);
    let refused = host.set_no_proxy(&["odd"]).await;
    let expected = "`odd` is neither an address nor a subnet".to_owned();
    assert_eq!(refused, Err(ProxyError::Invalid(expected)));
    assert_eq!(host.apply_proxy().await, Ok(()));
    assert_eq!(host.set_proxy(None).await, Ok(()));
    assert_eq!(host.proxy().await, Ok(ProxyState::Direct));
    let file = host.root().join("mnt/boot/system-proxy/kept");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "kept").unwrap();
    host.stop().await;
    host.stop().await;
    assert!(file.exists(), "a stopped device has its files");

    let other = Host::new().tool(TOOL).plugin(guest("greeter"));
    let other = other.policy("[plugins.greeter]\ngrants = [\"device\"]");
    let refused = other.start().await.proxy().await;
    assert!(
        matches!(refused, Err(ProxyError::Unavailable(_))),
        "{refused:?}"
    );
}
