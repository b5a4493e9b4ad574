use super::*;

fn config(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn prefixes_are_stripped_and_unknown_keys_are_dropped() {
    let given = config(&[
        ("PLATFORM_SUPERVISOR_DELTA", "1"),
        ("OLD_SUPERVISOR_POLL_INTERVAL", "60000"),
        ("HOST_CONFIG_gpu_mem", "16"),
        ("PLATFORM_HOST_CONFIG_dtparam", "\"spi=on\""),
        ("HOST_CONFIG_", "nothing named"),
        ("SOMETHING_ELSE", "x"),
    ]);
    let branding = Branding {
        aliases: vec!["OLD_".into()],
        ..Branding::default()
    };
    assert_eq!(
        retain_known(given, &prefixes(&branding)),
        config(&[
            ("SUPERVISOR_DELTA", "1"),
            ("SUPERVISOR_POLL_INTERVAL", "60000"),
            ("HOST_CONFIG_gpu_mem", "16"),
            ("HOST_CONFIG_dtparam", "\"spi=on\""),
        ])
    );
}

#[test]
fn a_key_without_prefix_wins_over_the_same_with_one() {
    let given = config(&[
        ("PLATFORM_SUPERVISOR_DELTA", "1"),
        ("SUPERVISOR_DELTA", "0"),
        ("ZZ_SUPERVISOR_DELTA", "1"),
    ]);
    assert_eq!(
        retain_known(given, &["PLATFORM_".into(), "ZZ_".into()]),
        config(&[("SUPERVISOR_DELTA", "0")])
    );
}

#[test]
fn unreadable_values_fall_back_to_the_default() {
    let set = config(&[
        ("SUPERVISOR_POLL_INTERVAL", "soon"),
        ("SUPERVISOR_DELTA_VERSION", ""),
        ("SUPERVISOR_VPN_CONTROL", ""),
    ]);
    assert_eq!(number(&set, "SUPERVISOR_POLL_INTERVAL"), 900_000);
    assert_eq!(number(&set, "SUPERVISOR_DELTA_VERSION"), 2);
    assert!(!flag(&set, "SUPERVISOR_VPN_CONTROL"), "empty is false");
    assert!(flag(&config(&[]), "SUPERVISOR_VPN_CONTROL"));
    assert_eq!(text(&set, "HOST_FIREWALL_MODE"), "off");
}

#[test]
fn invalid_variables_are_reported_with_the_value_that_applies() {
    let set = config(&[
        ("SUPERVISOR_VPN_CONTROL", "perhaps"),
        ("SUPERVISOR_LOG_CONTROL", "OFF"),
        ("SUPERVISOR_DELTA", ""),
        ("SUPERVISOR_POLL_INTERVAL", "soon"),
        ("SUPERVISOR_API_REQUEST_TIMEOUT", "5"),
        ("SUPERVISOR_DELTA_VERSION", "7"),
        ("SUPERVISOR_DELTA_RETRY_COUNT", ""),
        ("HOST_FIREWALL_MODE", "ON"),
        ("HOST_CONFIG_gpu_mem", "lots"),
    ]);
    assert_eq!(
        problems(&set),
        [
            "`HOST_FIREWALL_MODE` is `ON`, which is not one of `on`, `off`, `auto`: `off` is used instead",
            "`SUPERVISOR_API_REQUEST_TIMEOUT` is `5`, which is not from 1000 to 3600000: `1000` is used instead",
            "`SUPERVISOR_DELTA_RETRY_COUNT` is ``, which is not a whole number: `30` is used instead",
            "`SUPERVISOR_DELTA_VERSION` is `7`, which is not from 2 to 3: `3` is used instead",
            "`SUPERVISOR_POLL_INTERVAL` is `soon`, which is not a whole number: `900000` is used instead",
            "`SUPERVISOR_VPN_CONTROL` is `perhaps`, which is not `true` or `false`: `true` is used instead",
        ]
    );
    assert!(flag(&set, "SUPERVISOR_VPN_CONTROL"));
    assert!(!flag(&set, "SUPERVISOR_LOG_CONTROL"));
    assert_eq!(number(&set, "SUPERVISOR_API_REQUEST_TIMEOUT"), 1000);
    assert_eq!(number(&set, "SUPERVISOR_DELTA_VERSION"), 3);
}

#[test]
fn the_override_of_locks_has_an_older_name() {
    let branding = prefixes(&Branding::default());
    let older = retain_known(config(&[("PLATFORM_OVERRIDE_LOCK", "1")]), &branding);
    assert_eq!(older, config(&[("SUPERVISOR_OVERRIDE_LOCK", "1")]));
    let both = config(&[("OVERRIDE_LOCK", "1"), ("SUPERVISOR_OVERRIDE_LOCK", "0")]);
    let both = retain_known(both, &branding);
    assert_eq!(both, config(&[("SUPERVISOR_OVERRIDE_LOCK", "0")]));
}

#[test]
fn every_default_reads_as_its_kind() {
    for variable in VARIABLES {
        match variable.kind {
            VariableKind::Int(least, most) => {
                let default: i64 = variable.default.parse().unwrap();
                assert!((least..=most).contains(&default));
            }
            VariableKind::Bool => assert!(["true", "false"].contains(&variable.default)),
            VariableKind::Word(words) => assert!(words.contains(&variable.default)),
            VariableKind::OsVersion | VariableKind::OsBundle => {
                assert_eq!(variable.default, "");
            }
        }
    }
}
