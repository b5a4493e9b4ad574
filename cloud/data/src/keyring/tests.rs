use proptest::prelude::*;

use super::*;

fn keyring(names: &[&str]) -> Keyring {
    let line = |name: &&str| Keyring::new_line(Some(name)).expect("random numbers");
    let lines: Vec<String> = names.iter().map(line).collect();
    Keyring::parse(&lines.join("\n")).expect("keys")
}

fn place() -> SecretLocation {
    SecretLocation::from_row("device", "api_secret", 7)
}

proptest! {
    #[test]
    fn encrypted_values_can_be_decrypted_and_reveal_nothing(value in "\\PC{0,80}") {
        let keys = keyring(&["a"]);
        let kept = keys.seal(&place(), &value).expect("sealed");
        prop_assert!(value.len() < 3 || !kept.contains(&value));
        prop_assert_eq!(keys.open(&place(), &kept), Ok(value.clone()));
        let again = keys.seal(&place(), &value).expect("sealed");
        prop_assert_ne!(kept, again, "the same value is never kept in the same way");
        let open = Keyring::default();
        let kept = open.seal(&place(), &value).expect("kept");
        prop_assert_eq!(open.open(&place(), &kept), Ok(value));
    }

    #[test]
    fn a_changed_secret_cannot_be_decrypted(value in "[a-z]{0,40}", at in 0_usize..200, bit in 0_u8..6) {
        let keys = keyring(&["a"]);
        let kept = keys.seal(&place(), &value).expect("sealed");
        let begin = prefix("a").len();
        let mut bytes = kept.clone().into_bytes();
        let at = begin + at % (bytes.len() - begin);
        bytes[at] ^= 1 << bit;
        let changed = String::from_utf8_lossy(&bytes).into_owned();
        if changed != kept {
            prop_assert!(keys.open(&place(), &changed).is_err(), "{}", changed);
        }
    }

    #[test]
    fn no_content_of_the_database_causes_a_panic(rest in "\\PC{0,60}") {
        let keys = keyring(&["a"]);
        for begin in ["sealed:", "sealed:1:", "sealed:1:a:", "sealed:2:a:", ""] {
            let _ = keys.open(&place(), &format!("{begin}{rest}"));
        }
    }
}

#[test]
fn a_value_opens_at_its_place_alone() {
    let keys = keyring(&["a"]);
    let kept = keys.seal(&place(), "value").expect("sealed");
    for other in [
        SecretLocation::from_row("device", "api_secret", 8),
        SecretLocation::from_row("device", "note", 7),
        SecretLocation::from_row("device_environment_variable", "api_secret", 7),
        SecretLocation::from_setting("7"),
    ] {
        let refused = keys.open(&other, &kept).expect_err("another place");
        assert!(
            matches!(refused, UnreadableSecret::Refused { .. }),
            "{refused}"
        );
    }
}

#[test]
fn the_first_key_seals_and_all_open() {
    let old = keyring(&["old"]);
    let kept = old.seal(&place(), "value").expect("sealed");
    let both = Keyring {
        keys: keyring(&["new"])
            .keys
            .iter()
            .chain(old.keys.iter())
            .map(|key| NamedKey {
                name: key.name.clone(),
                cipher: key.cipher.clone(),
            })
            .collect(),
    };
    assert_eq!(both.open(&place(), &kept), Ok("value".to_owned()));
    let again = both.seal(&place(), "value").expect("sealed");
    assert_eq!((key_of(&kept), key_of(&again)), (Some("old"), Some("new")));
    let missing = old.open(&place(), &again).expect_err("another key");
    assert!(matches!(&missing, UnreadableSecret::NoKey { key, .. } if key == "new"));
    let other = keyring(&["old"]).open(&place(), &kept).expect_err("other");
    assert!(matches!(other, UnreadableSecret::Refused { .. }), "{other}");
}

#[test]
fn files_of_keys_are_read_or_refused_by_their_line() {
    let key = STANDARD.encode([7; KEY]);
    let names = |text: &str| {
        let names = Keyring::parse(text).map(|keys| keys.names().map(str::to_owned).collect());
        names.map_err(|error| error.to_string())
    };
    let two: Vec<String> = vec!["b".to_owned(), "a.1".to_owned()];
    assert_eq!(
        names(&format!("# keys\n\nb {key}\r\n  a.1\t{key}\n")),
        Ok(two)
    );
    let long = "n".repeat(LONGEST_NAME + 1);
    for (text, part) in [
        (String::new(), "holds no key"),
        ("# nothing\n".to_owned(), "holds no key"),
        (key.clone(), "line 1"),
        (format!("a {key}\nb c"), "line 2"),
        (format!("a {}", STANDARD.encode([7; 31])), "line 1"),
        (format!("a:b {key}"), "line 1"),
        (format!("{long} {key}"), "line 1"),
        (format!("a {key}\na {key}"), "the name `a`"),
    ] {
        let refused = names(&text).expect_err(&text);
        assert!(refused.contains(part), "{text:?}: {refused}");
        assert!(!refused.contains(&key), "{refused}");
    }
    assert!(!format!("{:?}", keyring(&["a"])).contains(&key));
}
