use super::*;

fn answers(text: &str) -> Result<ActionAnswers, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

fn plugins(text: &str) -> OtherPlugins {
    OtherPlugins::new(
        answers(text).unwrap(),
        "device.toml".to_owned(),
        Arc::default(),
    )
}

#[test]
fn an_action_answers_its_output_or_its_error_and_is_recorded() {
    let plugins = plugins(
        r#"
            "acme-rails/set" = { json = true }
            "acme-rails/list" = { json_text = '[null]' }
            "acme-rails/name" = { text = "5v" }
            "acme-rails/image" = { base64 = "/wA=" }
            "acme-rails/none" = { not_granted = "a" }
            "acme-rails/gone" = { unavailable = "b" }
            "acme-rails/long" = { invalid = "c" }
            "acme-rails/reset" = { refused = "d" }
            "acme-rails/crash" = { failed = "e" }
            "#,
    );
    for (action, expected) in [
        ("set", Ok(b"true".to_vec())),
        ("list", Ok(b"[null]".to_vec())),
        ("name", Ok(b"5v".to_vec())),
        ("image", Ok(vec![0xff, 0])),
        ("none", Err(OwnActionError::NotGranted("a".to_owned()))),
        ("gone", Err(OwnActionError::Unavailable("b".to_owned()))),
        ("long", Err(OwnActionError::Invalid("c".to_owned()))),
        ("reset", Err(OwnActionError::Refused("d".to_owned()))),
        ("crash", Err(OwnActionError::Failed("e".to_owned()))),
    ] {
        let action = format!("acme-rails/{action}");
        assert_eq!(plugins.answer(&action, b"x".to_vec()), expected, "{action}");
    }
    let (calls, missing) = plugins.take_calls();
    assert_eq!((calls.len(), missing), (9, 0));
    let first = RecordedCall {
        action: "acme-rails/set".to_owned(),
        input: b"x".to_vec(),
    };
    assert_eq!(calls.first(), Some(&first));
    assert_eq!(plugins.take_calls(), (Vec::new(), 0));
}

#[test]
fn an_action_without_an_answer_is_unavailable_and_the_hint_says_what_to_write() {
    let plugins = plugins("");
    let error = plugins.answer("acme-rails/set", Vec::new()).unwrap_err();
    let expected = "no plugin of this device provides `acme-rails/set`".to_owned();
    assert_eq!(error, OwnActionError::Unavailable(expected));
    assert_eq!(
        plugins.hint("acme-rails/set", "acme-rails/set"),
        "the plugin calls the action `acme-rails/set`, and `device.toml` has no answer for it: add for example \
             `\"acme-rails/set\" = { json = true }` to its table [actions]"
    );
    let hint = plugins.hint("set", "set");
    assert!(hint.contains("that is not the name of an action"), "{hint}");
    assert_eq!(plugins.hints.take().len(), 1);
}

#[test]
fn calls_of_any_number_and_size_are_recorded_within_bounds() {
    let plugins = plugins("\"a/b\" = { text = \"\" }");
    for _ in 0..=CALLS {
        plugins.answer("a/b", vec![1]).unwrap();
    }
    let (calls, missing) = plugins.take_calls();
    assert_eq!((calls.len(), missing), (CALLS, 1));
    let large = INPUT_BYTES / ACTION_BYTES;
    for _ in 0..large {
        plugins.answer("a/b", vec![1; ACTION_BYTES]).unwrap();
    }
    let (calls, missing) = plugins.take_calls();
    assert_eq!(
        (calls.len(), missing),
        (large - 1, 1),
        "the names count too"
    );
    let error = plugins.answer("a/b", vec![1; ACTION_BYTES + 1]);
    assert!(matches!(error, Err(OwnActionError::Invalid(_))));
    for number in 0..CALLS {
        let name = format!("a/{number}\n{}", "x".repeat(1 << 10));
        let error = plugins.answer(&name, Vec::new()).unwrap_err().to_string();
        assert!(
            error.len() < 2 * SHOWN_NAME && !error.contains('\n'),
            "{error}"
        );
    }
}

#[test]
fn an_invalid_answer_is_refused() {
    let many: String = (0..=ACTIONS)
        .map(|number| format!("\"a/b{number}\" = {{ text = \"\" }}\n"))
        .collect();
    let long = format!(
        "\"a/b\" = {{ text = \"{}\" }}",
        "x".repeat(ACTION_BYTES + 1)
    );
    let words = format!("\"a/b\" = {{ refused = \"{}\" }}", "x".repeat(LONGEST + 1));
    for (text, expected) in [
        ("\"a/b\" = {}", "an action answers one of `text`"),
        (
            "\"a/b\" = { text = \"\", failed = \"\" }",
            "an action answers one of `text`",
        ),
        (
            "\"a/b\" = { refused = \"\", failed = \"\" }",
            "an action answers one of `text`",
        ),
        (
            "\"a/b\" = { text = \"\", json = 1 }",
            "it can have only one of `text`",
        ),
        (
            "\"a/b\" = { postponed = \"\" }",
            "unknown field `postponed`",
        ),
        (
            "b = { text = \"\" }",
            "`actions` has `b`: write the plugin's",
        ),
        ("\"a/b/c\" = { text = \"\" }", "`actions` has `a/b/c`"),
        ("\"A/b\" = { text = \"\" }", "`actions` has `A/b`"),
        (many.as_str(), "65 actions, but at most 64 are allowed"),
        (long.as_str(), "an action answers at most 524288"),
        (words.as_str(), "a plugin receives at most 4096 of it"),
    ] {
        let error = answers(text).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
