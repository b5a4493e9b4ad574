//! Files that nobody would write: each gets the target's settings, and is as before when the target is
//! empty.

use fuzz::{corpus, mutated};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const CORPUS: &str = include_str!("corpus.txt");
const WORDS: &[&str] = &[
    "\n",
    "\r\n",
    "\r",
    "[all]\n",
    "\n[pi4]\n",
    "[",
    "]",
    "=",
    "#",
    "a=",
    "dtparam=",
    "dtoverlay=",
    "\ndtoverlay=\n",
    "gpio=1=op\n",
    "include x.txt\n",
    "initramfs a b\n",
    "# Set by the device supervisor (HOST_CONFIG_...), which undoes changes made here:\n",
    "# End of what the device supervisor has set.\n",
    "# Set aside by the device supervisor: ",
    "\u{0}",
    "\u{feff}",
];

fn settings_of_any() -> impl Strategy<Value = Settings> {
    let single = ("[a-c]|gpu_mem", "[0-9]{0,2}").prop_map(|(key, value)| (key, vec![value]));
    let several = ("dtparam|dtoverlay|gpio", vec("[a-z]{1,2}(=on)?", 0..3));
    vec(prop_oneof![single, several], 0..4).prop_map(|settings| settings.into_iter().collect())
}

#[test]
fn any_config_txt_gets_the_settings_and_can_be_restored() {
    let inputs = (mutated(corpus(CORPUS), WORDS), settings_of_any());
    fuzz::run("config-txt", 2000, &inputs, |(text, settings)| {
        let file = ConfigTxt::parse(text.as_bytes());
        let next = file.with(&settings);
        let found = ConfigTxt::parse(&next).settings();
        for (key, values) in &settings {
            let none = Vec::new();
            prop_assert_eq!(found.get(key).unwrap_or(&none), values, "{}", key);
        }
        prop_assert_eq!(
            &ConfigTxt::parse(&next).with(&settings),
            &next,
            "twice is as once"
        );
        let without = file.with(&Settings::new());
        let mut back = ConfigTxt::parse(&next).with(&Settings::new());
        if back.len() > without.len() {
            // A last line without an ending gets one, and keeps it.
            let end = back.split_off(without.len());
            prop_assert!(end == b"\n" || end == b"\r\n", "{:?}", end);
        }
        prop_assert_eq!(back, without);
        // A few lines more than before, whatever they contain.
        prop_assert!(
            next.len() < 60 * (text.len() + 40),
            "{} bytes of {}",
            next.len(),
            text.len()
        );
        Ok(())
    });
}
