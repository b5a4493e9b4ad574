//! Flags, files and defaults, combined.

use clap::Args as _;

use super::*;

fn merged(flags: &[&str], file: &str) -> Result<Configuration> {
    let file = ConfigurationFile::new(Path::new("s.toml"), file.to_owned());
    let command = Settings::augment_args(clap::Command::new("supervisor"));
    let flags = command.no_binary_name(true).get_matches_from(flags);
    merge(Some(&file), &flags, Path::new("/opt/dist/bin/supervisor"))
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
fn an_error_of_the_file_names_the_file_the_line_the_table_the_key_and_what_is_allowed() {
    for (file, expected) in [
        (
            "engine = \"wasm\"\nstat_dir = \"x\"",
            "s.toml:2: stat_dir: there is no key `stat_dir` here; the keys are `state_dir`, `listen`",
        ),
        (
            "# first\n\nengine = \"podman\"",
            "s.toml:3: engine: `podman` is not known here; choose one of `auto`, `docker`, `wasm`",
        ),
        (
            "firewall_ports = [\n  22,\n  70000,\n]",
            "s.toml:3: firewall_ports: a whole number of at most 16 bits is expected, but this is the number `70000`",
        ),
        (
            "exclusive = 1",
            "s.toml:1: exclusive: `true` or `false` is expected, but this is the number `1`",
        ),
        (
            "host_actions = \"none\"",
            "s.toml:1: host_actions: `none` is not known here; choose one of `dbus` or `rehearse`",
        ),
        (
            "engine = \"wasm\"\nlisten = [\"localhost\"]",
            "s.toml:2: listen: `localhost` is not an address to listen on, such as",
        ),
        (
            "host_names = [\"a b\"]",
            "s.toml:1: host_names: `a b` is not a valid host name: letters, digits",
        ),
        (
            "host_names = [\".\"]",
            "s.toml:1: host_names: `.` is not a valid host name",
        ),
        ("service_keys = \"none\"", "s.toml:1: service_keys: "),
        ("vpn_unit = \"openvpn\"", "s.toml:1: vpn_unit: `openvpn`"),
        ("own_app = \"a b\"", "s.toml:1: own_app: "),
        (
            "first_service_user = 5",
            "s.toml:1: first_service_user: 5 is not allowed: the 65536 user numbers from there on must all be from 1,000",
        ),
        (
            "[branding]\n\napi_level = \"1.0.0\"",
            "s.toml:3: [branding] api_level: `1.0.0` must be three numbers separated by dots, at least 16.6.0",
        ),
        (
            "[branding]\napi_level = \"20\"",
            "s.toml:2: [branding] api_level: `20` must be",
        ),
        (
            "[branding]\nenv_prefix = \"A B\"",
            "s.toml:2: [branding] env_prefix: `A B` cannot be part of a variable's name: letters",
        ),
        (
            "[branding]\naliases = [\"A_\", \"1\"]",
            "s.toml:2: [branding] aliases: `1` cannot be part of a variable's name",
        ),
        (
            "[branding]\nfolder = \"../x\"",
            "s.toml:2: [branding] folder: `../x` is not a valid name: letters",
        ),
        (
            "[branding]\nnmae = \"x\"",
            "s.toml:2: [branding] nmae: there is no key `nmae` here; the keys are `env_prefix`",
        ),
        (
            "branding = { nmae = \"x\" }",
            "s.toml:1: [branding] nmae: there is no key `nmae` here",
        ),
        ("engine = \"wasm\"\n[brandig", "s.toml:"),
        ("engine = ", "s.toml:"),
    ] {
        let error = format!("{:#}", merged(&[], file).unwrap_err());
        assert!(error.starts_with(expected), "{file}: {error}");
        assert_eq!(error.lines().count(), 1, "{file}: {error}");
    }
}

/// The line in the file is not the cause if a flag takes precedence over it.
#[test]
fn an_error_of_a_flag_does_not_name_the_file() {
    let error = merged(&["--listen=localhost"], "listen = [\"127.0.0.1:1\"]").unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.starts_with("listen: `localhost` is not an address to listen on"),
        "{error}"
    );
}
