use proptest::prelude::*;

use super::*;

const STOCK: &str = "\
# What the board came with
gpu_mem=64
dtparam=audio=on
dtparam=i2c_arm=on
dtoverlay=vc4-kms-v3d
[pi4]
arm_boost=1
gpu_mem=128
dtparam=poe_fan_temp0=50000
[all]
include extra.txt
gpio=4=op,dh
initramfs initrd.gz followkernel
";

fn settings_from(settings: &[(&str, &[&str])]) -> Settings {
    settings
        .iter()
        .map(|(key, values)| {
            let values = values.iter().map(|value| (*value).to_owned());
            ((*key).to_owned(), values.collect())
        })
        .collect()
}

fn with(text: &str, settings: &[(&str, &[&str])]) -> String {
    let next = ConfigTxt::parse(text.as_bytes()).with(&settings_from(settings));
    String::from_utf8(next).unwrap()
}

#[test]
fn settings_are_those_that_hold_for_all_boards_and_the_last_counts() {
    let file =
        ConfigTxt::parse(b"a=1\r\na = 2\r\n[EDID=x]\na=3\n[ALL]\nb=\n gpio=1=op\ngpio=2=ip\n");
    let expected = settings_from(&[("a", &["2"]), ("b", &[""]), ("gpio", &["1=op", "2=ip"])]);
    assert_eq!(file.settings(), expected);
    let stock = ConfigTxt::parse(STOCK.as_bytes()).settings();
    let expected = settings_from(&[
        ("gpu_mem", &["64"]),
        ("dtparam", &["audio=on", "i2c_arm=on"]),
        ("dtoverlay", &["vc4-kms-v3d"]),
        ("gpio", &["4=op,dh"]),
        ("initramfs", &["initrd.gz followkernel"]),
    ]);
    assert_eq!(stock, expected);
}

#[test]
fn new_settings_are_at_the_end_and_replaced_ones_are_commented_out() {
    let next = with(
        STOCK,
        &[
            ("gpu_mem", &["16"]),
            ("dtparam", &["spi=on"]),
            ("dtoverlay", &["i2c-rtc,ds3231", "gpio-ir"]),
            ("enable_uart", &["1"]),
        ],
    );
    let expected = "\
# What the board came with
# Set aside by the device supervisor: gpu_mem=64
# Set aside by the device supervisor: dtparam=audio=on
# Set aside by the device supervisor: dtparam=i2c_arm=on
# Set aside by the device supervisor: dtoverlay=vc4-kms-v3d
[pi4]
arm_boost=1
gpu_mem=128
dtparam=poe_fan_temp0=50000
[all]
include extra.txt
gpio=4=op,dh
initramfs initrd.gz followkernel
# Set by the device supervisor (HOST_CONFIG_...), which undoes changes made here:
[all]
dtparam=spi=on
enable_uart=1
gpu_mem=16
dtoverlay=i2c-rtc,ds3231
dtoverlay=gpio-ir
# End of what the device supervisor has set.
";
    assert_eq!(next, expected);
    assert_eq!(with(&next, &[]), STOCK, "all comes back");
    let less = with(&next, &[("gpu_mem", &["16"])]);
    assert!(less.contains("\ndtparam=audio=on\n"), "{less}");
    assert!(less.contains("supervisor: gpu_mem=64\n"), "{less}");
}

#[test]
fn parameters_are_the_boards_and_no_overlays_above() {
    let next = with("dtoverlay=a\n", &[("dtparam", &["spi=on"])]);
    assert!(
        next.contains("\n[all]\ndtoverlay=\ndtparam=spi=on\n"),
        "{next}"
    );
    let settings = ConfigTxt::parse(next.as_bytes()).settings();
    let expected = settings_from(&[("dtparam", &["spi=on"]), ("dtoverlay", &["a"])]);
    assert_eq!(settings, expected);
}

#[test]
fn a_setting_that_the_file_has_by_itself_is_not_written_twice() {
    let same: &[(&str, &[&str])] = &[
        ("gpu_mem", &["64"]),
        ("dtparam", &["audio=on", "i2c_arm=on"]),
    ];
    assert_eq!(with(STOCK, same), STOCK);
    assert_eq!(with("", &[("gpio", &[])]), "");
}

#[test]
fn an_empty_list_takes_what_the_file_has() {
    let next = with("gpio=1=op\na=1\n", &[("gpio", &[])]);
    let settings = ConfigTxt::parse(next.as_bytes()).settings();
    assert_eq!(settings, settings_from(&[("a", &["1"])]));
    assert_eq!(with(&next, &[]), "gpio=1=op\na=1\n");
}

#[test]
fn lines_below_the_block_stay_and_apply_to_all_boards() {
    let next = with("[pi4]\na=1\n", &[("b", &["2"])]) + "c=3\n";
    let file = ConfigTxt::parse(next.as_bytes());
    assert_eq!(
        file.settings(),
        settings_from(&[("b", &["2"]), ("c", &["3"])])
    );
    assert_eq!(with(&next, &[]), "[pi4]\na=1\n[all]\nc=3\n");
    let again = with(&next, &[("b", &["2"])]);
    assert!(
        again.starts_with("[pi4]\na=1\n[all]\nc=3\n# Set by"),
        "{again}"
    );
}

#[test]
fn a_block_that_lost_its_last_line_ends_where_something_else_begins() {
    let next = with("a=1\n", &[("b", &["2"])]);
    let cut = next.replace(END, "# mine") + "c=3\n";
    assert_eq!(with(&cut, &[]), "a=1\n# mine\nc=3\n");
}

#[test]
fn line_ends_are_kept_and_a_missing_one_is_added_where_it_must_be() {
    let next = with("a=1\r\nb=2", &[("a", &["3"])]);
    let expected = format!("{SET_ASIDE}a=1\r\nb=2\r\n{BEGIN}\r\n[all]\r\na=3\r\n{END}\r\n");
    assert_eq!(next, expected);
    assert_eq!(with("a=1\nb=2", &[("b", &["2"])]), "a=1\nb=2");
    assert_eq!(with("\n\n", &[]), "\n\n");
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    let file = b"# \xff\xfe\na=1\n\0\n";
    let next = ConfigTxt::parse(file).with(&settings_from(&[("a", &["2"])]));
    assert!(next.starts_with(b"# \xff\xfe\n# Set aside"));
    assert_eq!(ConfigTxt::parse(&next).with(&Settings::new()), file);
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]=[0-9]{0,2}",
        "(dtparam|dtoverlay|gpio)=[a-z]{0,2}(=on)?",
        Just("[pi4]".to_owned()),
        Just("[all]".to_owned()),
        Just("[none]\r".to_owned()),
        "#[ -~]{0,9}",
        "[ -~]{0,9}",
        Just("include extra.txt".to_owned()),
    ]
}

fn settings_of_any() -> impl Strategy<Value = Settings> {
    let single = ("[a-c]", "[0-9]{0,2}").prop_map(|(key, value)| (key, vec![value]));
    let values = prop::collection::vec("[a-z]{1,2}(=on)?", 0..3);
    let several = ("dtparam|dtoverlay|gpio", values);
    prop::collection::vec(prop_oneof![single, several], 0..5)
        .prop_map(|settings| settings.into_iter().collect())
}

proptest! {
    #[test]
    fn any_file_gets_the_settings_and_nothing_else_changes(
        lines in prop::collection::vec(line(), 0..12),
        first in settings_of_any(),
        second in settings_of_any(),
    ) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let file = ConfigTxt::parse(text.as_bytes());
        let stock = file.settings();
        let once = ConfigTxt::parse(&file.with(&first)).with(&second);
        let after = ConfigTxt::parse(&once).settings();
        for (key, values) in &second {
            let none = Vec::new();
            prop_assert_eq!(after.get(key).unwrap_or(&none), values, "{}", key);
        }
        for (key, values) in &stock {
            if !second.contains_key(key) {
                prop_assert_eq!(after.get(key), Some(values), "{}", key);
            }
        }
        prop_assert_eq!(ConfigTxt::parse(&once).with(&second), once.clone(), "twice is as once");
        let back = ConfigTxt::parse(&once).with(&Settings::new());
        prop_assert_eq!(String::from_utf8(back).unwrap(), text);
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let file = ConfigTxt::parse(&bytes);
        file.settings();
        prop_assert_eq!(file.with(&Settings::new()), bytes);
    }
}
