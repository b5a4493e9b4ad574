//! Flags, files and defaults, combined.

use clap::Args as _;

use super::*;

fn merged(flags: &[&str], file: &str) -> Result<Configuration> {
    let mut settings: Settings = toml::from_str(file).context("failed to parse")?;
    let command = Settings::augment_args(clap::Command::new("supervisor"));
    let flags = command.no_binary_name(true).get_matches_from(flags);
    settings.update_from_arg_matches(&flags)?;
    complete(settings, Path::new("/opt/dist/bin/supervisor"))
}

#[test]
fn defaults_are_beside_the_program() {
    let configuration = merged(&[], "").unwrap();
    assert_eq!(configuration.plugin_dirs, [Path::new("/opt/dist/plugins")]);
    assert_eq!(configuration.policy, Path::new("/opt/dist/policy.toml"));
    assert_eq!(
        configuration.stock_plugins,
        Path::new("/opt/dist/stock-plugins.toml")
    );
    assert!(!configuration.allow_unpinned);
    assert_eq!(configuration.plain_http(), PlainHttp::Loopback);
    assert_eq!(
        configuration.compiler,
        Path::new("/opt/dist/bin/supervisor-compile")
    );
    assert_eq!(
        configuration.wasm_program,
        Path::new("/opt/dist/bin/supervisor-wasm")
    );
    let address = "127.0.0.1:48484".parse().unwrap();
    assert_eq!(configuration.listen, [ListenAddress::with_keys(address)]);
    assert_eq!(
        configuration.device_type,
        Path::new("/mnt/boot/device-type.json")
    );
    assert_eq!(
        configuration.config_json,
        Path::new("/mnt/boot/config.json")
    );
    assert_eq!(configuration.host_actions, HostActions::Dbus);
    assert_eq!(configuration.journal_program, Path::new("journalctl"));
    assert_eq!(configuration.vpn_unit.as_str(), "openvpn.service");
    assert_eq!(
        configuration.dbus_address,
        "unix:path=/run/dbus/system_bus_socket"
    );
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let file = r#"
        state_dir = "/file/state"
        host_root = "/file/root"
        listen = ["127.0.0.1:1", "[::1]:2=open+any-process"]
        engine = "wasm"
        exclusive = true
        allow_plain = true
        local_mode_auth = "local-endpoints"
        host_names = ["Board.example.com."]
        service_keys = "own-app"
        host_actions = "rehearse"
        plugin_dirs = ["/file/plugins"]
        [branding]
        api_level = "20.1.0"
        [plugins.led-blink]
        led = "ACT"
    "#;
    let flags = [
        "--state-dir=/flag/state",
        "--plugin-dir=/flag/plugins",
        "--exclusive=false",
    ];
    let merged = merged(&flags, file).unwrap();
    assert_eq!(merged.state_dir, Path::new("/flag/state"));
    assert_eq!(merged.plugin_dirs, [Path::new("/flag/plugins")]);
    assert!(!merged.exclusive);
    assert_eq!(merged.plain_http(), PlainHttp::Anywhere);
    assert_eq!(merged.host_root, Path::new("/file/root"));
    assert_eq!(
        merged.device_type,
        Path::new("/file/root/mnt/boot/device-type.json")
    );
    assert_eq!(
        merged.config_json,
        Path::new("/file/root/mnt/boot/config.json")
    );
    assert_eq!(merged.host_actions, HostActions::Rehearse);
    assert_eq!(
        merged.dbus_address,
        "unix:path=/file/root/run/dbus/system_bus_socket"
    );
    assert_eq!(merged.listen.len(), 2);
    assert_eq!(merged.engine, EngineChoice::Wasm);
    let auths: Vec<_> = merged.listen.iter().map(|l| l.keyless.auth).collect();
    assert_eq!(
        auths,
        [api::LocalModeAuth::LocalEndpoints, api::LocalModeAuth::Open]
    );
    assert_eq!(merged.host_names, ["board.example.com"]);
    assert_eq!(merged.service_keys, api::ServiceKeys::OwnApp);
    assert!(merged.without_effect.is_empty());
    assert_eq!(merged.branding.api_level, "20.1.0");
    assert_eq!(merged.plugins["led-blink"]["led"].as_str(), Some("ACT"));
}

#[test]
fn an_address_that_nobody_named_is_not_opened() {
    let configuration = merged(&[], "local_mode_auth = \"open\"").unwrap();
    assert_eq!(
        configuration.listen[0].keyless.auth,
        api::LocalModeAuth::Strict
    );
    assert!(configuration.without_effect[0].contains("`listen`"));
}

#[test]
fn what_the_file_may_not_say_is_an_error_that_names_it() {
    for (file, named) in [
        ("engine = \"wasm\"\nstat_dir = \"x\"", "line 2"),
        ("engine = \"podman\"", "line 1"),
        ("firewall_ports = [70000]", "line 1"),
        ("host_actions = \"none\"", "line 1"),
        ("listen = [\"localhost\"]", "localhost"),
        ("host_names = [\"a b\"]", "`a b`"),
        ("host_names = [\".\"]", "`.`"),
        ("service_keys = \"none\"", "line 1"),
        ("vpn_unit = \"openvpn\"", "`openvpn`"),
        ("[branding]\napi_level = \"1.0.0\"", "api_level"),
        ("[branding]\napi_level = \"20\"", "api_level"),
        ("[branding]\nenv_prefix = \"A B\"", "env_prefix"),
        ("[branding]\nfolder = \"../x\"", "folder"),
        ("[branding]\nnmae = \"x\"", "line 2"),
    ] {
        let error = merged(&[], file).unwrap_err();
        let chain = format!("{error:#}");
        assert!(chain.contains(named), "{file}: {chain}");
    }
}
