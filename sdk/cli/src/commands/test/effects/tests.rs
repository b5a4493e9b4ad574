use super::*;

fn log(text: &str) -> Result<TestEffects> {
    TestEffects::of_log(toml::from_str(text)?, 1)
}

/// Returns how entries differ from what a step expects.
fn differences(step: &TestEffects, entries: &[&str], missing: usize) -> String {
    let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
    let differences = match &step.expected {
        ExpectedEffects::Log { lines, contains } => {
            let lines = lines.as_ref();
            let compared = lines.map(|lines| compare("lines of the log", lines, &entries, missing));
            let mut differences = compared.unwrap_or_default();
            differences.extend(absent(contains, &entries, missing));
            differences
        }
        ExpectedEffects::Queue(expected) | ExpectedEffects::Restarts(expected) => {
            compare("entries", expected, &entries, missing)
        }
        ExpectedEffects::Brightnesses(expected) => {
            compare("entries", &led_lines(expected), &entries, missing)
        }
    };
    differences.join("\n")
}

#[test]
fn lines_of_the_log_are_compared_as_a_whole_or_by_the_texts_that_they_contain() {
    let logged = ["info: the door is open", "warn: it is cold"];
    for (text, expected) in [
        (
            "lines = [\"info: the door is open\", \"warn: it is cold\"]",
            "",
        ),
        ("contains = [\"cold\", \"info: the door\"]", ""),
        (
            "lines = [\"info: the door is open\", \"error: it is cold\"]",
            "expected the lines of the log with `-`, got those with `+`:\n    info: the door is open\n  - error: it is \
                 cold\n  + warn: it is cold",
        ),
        (
            "lines = []",
            "expected the lines of the log with `-`, got those with `+`:\n  + info: the door is open\n  + warn: it is cold",
        ),
        (
            "contains = [\"shut\"]",
            "expected a line of the log that contains \"shut\"\nthe log:\n  info: the door is open\n  warn: it is cold",
        ),
    ] {
        assert_eq!(
            differences(&log(text).unwrap(), &logged, 0),
            expected,
            "{text}"
        );
    }
    let none = differences(&log("contains = [\"shut\"]").unwrap(), &[], 0);
    assert!(none.ends_with("the plugin has logged nothing"), "{none}");
    let more = differences(&log("lines = []").unwrap(), &[], 7);
    assert!(
        more.contains("there are 7 more than this tool records"),
        "{more}"
    );
}

#[test]
fn values_for_the_cloud_units_and_leds_are_compared_in_their_order() {
    let cloud =
        "queue = [{ kind = \"device_tag\", values = { value = \"north\", tag_key = \"site\" } }]";
    let cloud = TestEffects::of_cloud(toml::from_str(cloud).unwrap(), 1);
    let units = "restart = [\"a.service\", \"b.service\"]";
    let units = TestEffects::of_units(toml::from_str(units).unwrap(), 1);
    let leds = "set = { PWR = [1], ACT = [255, 0], NET = [] }";
    let leds = TestEffects::of_leds(toml::from_str(leds).unwrap(), 1);
    let north = "device_tag: tag_key = \"site\", value = \"north\"";
    let south = "device_tag: tag_key = \"site\", value = \"south\"";
    for (step, entries, expected) in [
        (&cloud, &[north][..], ""),
        (
            &cloud,
            &[south],
            "+ device_tag: tag_key = \"site\", value = \"south\"",
        ),
        (&cloud, &[north, south], "+ device_tag"),
        (&units, &["a.service", "b.service"], ""),
        (&units, &["b.service", "a.service"], "a.service"),
        (&units, &["a.service"], "- b.service"),
        (&leds, &["ACT: 255, 0", "PWR: 1"], ""),
        (
            &leds,
            &["ACT: 0, 255", "PWR: 1"],
            "- ACT: 255, 0\n  + ACT: 0, 255",
        ),
        (&leds, &["ACT: 255, 0"], "- PWR: 1"),
    ] {
        let found = differences(step, entries, 0);
        assert!(found.contains(expected), "{expected} in {found}");
        assert_eq!(found.is_empty(), expected.is_empty(), "{found}");
    }
    let brightnesses = [("B", 1), ("A", 2), ("B", 0)];
    let brightnesses = brightnesses.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(
        led_lines(&by_led(brightnesses.to_vec())),
        ["A: 2", "B: 1, 0"]
    );
}

#[test]
fn expectations_that_compare_nothing_or_have_no_level_are_refused() {
    for (text, expected) in [
        ("", "it must have `lines` or `contains`"),
        ("contains = []", "it must have `lines` or `contains`"),
        ("text = \"a\"", "unknown field `text`"),
        (
            "lines = [\"a: b\"]",
            "its line \"a: b\" has no level: write for example \"info: a: b\", with one of the levels debug, info, warn, error",
        ),
    ] {
        let error = format!("{:#}", log(text).err().unwrap());
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
