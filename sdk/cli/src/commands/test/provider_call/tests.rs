use plugin_test_host::OsStatus;
use plugin_test_host::protocol::{Proxy, ProxyKind, ProxyState, Redirection};

use super::*;

fn is_as_expected(answer: &str, output: &[u8]) -> Vec<String> {
    let mut answer: ExpectedOutcome = toml::from_str(answer).unwrap();
    leave_out_absent(&mut answer);
    answer.differences(&ActionOutcome::Output(output.to_vec()))
}

#[test]
fn an_absent_part_of_an_answer_is_left_out_or_null() {
    let status = OsStatus {
        running: "1.0".to_owned(),
        committed: true,
        ..OsStatus::default()
    };
    let status = bytes_of(serde_json::to_value(status));
    let comparison = BootComparison {
        changes: vec!["HOST_CONFIG_a".to_owned()],
        refused: vec![("HOST_CONFIG_b".to_owned(), "it is odd".to_owned())],
        ..BootComparison::default()
    };
    let comparison = bytes_of(Ok(comparison_json(comparison)));
    let proxy = ProxyState::Redirected(Redirection {
        proxy: Proxy {
            kind: ProxyKind::HttpConnect,
            address: "10.0.0.9".to_owned(),
            port: 1080,
            login: Some("a".to_owned()),
            password: None,
        },
        dns: None,
    });
    let proxy = bytes_of(Ok(state_json(proxy)));
    for (answer, output, is_expected) in [
        (
            "json = { running = \"1.0\", committed = true }",
            &status,
            true,
        ),
        (
            "json_text = '{\"running\":\"1.0\",\"committed\":true,\"staged\":null}'",
            &status,
            true,
        ),
        (
            "json = { running = \"1.0\", committed = false }",
            &status,
            false,
        ),
        (
            "json = { running = \"1.0\", committed = true, staged = \"2.0\" }",
            &status,
            false,
        ),
        (
            "json = { changes = [\"HOST_CONFIG_a\"], refused = { HOST_CONFIG_b = \"it is odd\" }, needs_reboot = false }",
            &comparison,
            true,
        ),
        (
            "json = { changes = [\"HOST_CONFIG_a\"], foreign = [], refused = { HOST_CONFIG_b = \"it is odd\" }, needs_reboot = false }",
            &comparison,
            true,
        ),
        (
            "json = { changes = [\"HOST_CONFIG_a\"], needs_reboot = false }",
            &comparison,
            false,
        ),
        (
            "json = { proxy = { kind = \"http-connect\", address = \"10.0.0.9\", port = 1080, login = \"a\" } }",
            &proxy,
            true,
        ),
        (
            "json = { proxy = { kind = \"http-connect\", address = \"10.0.0.9\", port = 1080 } }",
            &proxy,
            false,
        ),
    ] {
        let differences = is_as_expected(answer, output);
        assert_eq!(
            differences.is_empty(),
            is_expected,
            "{answer}: {differences:?}"
        );
    }
}

#[test]
fn a_setting_that_is_returned_twice_is_an_error() {
    let setting = |value: &str| BootSetting::from(("HOST_CONFIG_a", value));
    let found = settings_json(vec![setting("1")]).unwrap();
    assert_eq!(found, b"{\"HOST_CONFIG_a\":\"1\"}");
    let twice = settings_json(vec![setting("1"), setting("2")]);
    assert_eq!(
        twice.unwrap_err(),
        "it returned the setting `HOST_CONFIG_a` twice"
    );
}
