//! Conversion of a target's variables to settings of `config.txt`, and back
//! (docs/spec/device.md#boot-config).

use supervisor_sdk::boot_config::Setting;

/// The beginning of the names of variables for such boards.
pub(crate) const PREFIX: &str = "HOST_CONFIG_";

/// Keys that occur in the file once for each value; of others the last line counts.
pub(crate) const REPEATED: [&str; 5] = [
    "dtparam",
    "dtoverlay",
    "device_tree_param",
    "device_tree_overlay",
    "gpio",
];

/// Keys that decide what is booted: with a wrong value, nobody could reach the device to correct it.
const FORBIDDEN: [&str; 19] = [
    "disable_commandline_tags",
    "cmdline",
    "kernel",
    "kernel_address",
    "kernel_old",
    "ramfsfile",
    "ramfsaddr",
    "initramfs",
    "device_tree_address",
    "init_emmc_clock",
    "avoid_safe_mode",
    // The places of these files, the firmware's own files, and those that run before the kernel.
    "os_prefix",
    "overlay_prefix",
    "start_file",
    "fixup_file",
    "armstub",
    "device_tree",
    "auto_initramfs",
    // Another file, whose contents are unknown here.
    "include",
];

/// The number of bytes that the firmware reads of a line.
const LINE: usize = 98;

/// Returns whether the supervisor must not change this key.
pub(crate) fn is_forbidden(key: &str) -> bool {
    FORBIDDEN
        .iter()
        .any(|forbidden| forbidden.eq_ignore_ascii_case(key))
}

pub(crate) fn is_repeated(key: &str) -> bool {
    REPEATED.contains(&key)
}

/// Returns the values of `key` that a variable contains: one, or for repeated keys any number, as `value` or
/// `"a","b"`.
///
/// # Errors
/// What is wrong with the value.
pub(crate) fn values(key: &str, text: &str) -> Result<Vec<String>, String> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    if key.is_empty() || !key.chars().all(is_key) {
        return Err("its key is not a valid key of config.txt".to_owned());
    }
    let values = match text.trim() {
        list if is_repeated(key) && list.starts_with('"') => {
            let list: Result<Vec<String>, _> = serde_json::from_str(&format!("[{list}]"));
            list.map_err(|_| {
                format!("`{text}` is not a list: write one value without quotes, or `\"a\",\"b\"`")
            })?
        }
        one => vec![one.to_owned()],
    };
    let mut checked = Vec::new();
    for value in values {
        let value = value.trim();
        if value.chars().any(char::is_control) {
            return Err(
                "a value may not contain line breaks or other control characters".to_owned(),
            );
        }
        let length = key.len() + 1 + value.len();
        if length > LINE {
            return Err(format!(
                "`{key}={value}` has {length} bytes, but the firmware reads only {LINE} bytes of a line"
            ));
        }
        // An empty value in a list is not a setting; a plain key may be empty.
        if !(is_repeated(key) && value.is_empty()) {
            checked.push(value.to_owned());
        }
    }
    Ok(checked)
}

/// Returns the variable that would give `key` these values.
pub(crate) fn to_variable(key: &str, values: &[String]) -> Setting {
    let text = match values {
        [] => String::new(),
        [one] if !one.starts_with('"') => one.clone(),
        several => {
            let quoted: Vec<String> = several
                .iter()
                .map(|value| serde_json::Value::from(value.as_str()).to_string())
                .collect();
            quoted.join(",")
        }
    };
    Setting::new(format!("{PREFIX}{key}"), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_plain_and_as_lists() {
        for (key, text, expected) in [
            ("gpu_mem", "16", Ok(vec!["16"])),
            ("gpu_mem", " 16 ", Ok(vec!["16"])),
            ("hdmi_mode:1", "", Ok(vec![""])),
            // A plain key has no lists.
            ("dtdebug", "\"1\"", Ok(vec!["\"1\""])),
            (
                "dtparam",
                "i2c_arm=on,spi=on",
                Ok(vec!["i2c_arm=on,spi=on"]),
            ),
            (
                "dtparam",
                "\"i2c_arm=on\",\"spi=on\"",
                Ok(vec!["i2c_arm=on", "spi=on"]),
            ),
            ("dtoverlay", "\"a,b=1\" , \"c\"", Ok(vec!["a,b=1", "c"])),
            ("dtoverlay", "\"a\",\"\"", Ok(vec!["a"])),
            ("gpio", "", Ok(vec![])),
            ("gpio", "\"4=op,dh\",5", Err("is not a list")),
            ("gpio", "\"4=op", Err("is not a list")),
            ("gpu_mem", "16\nkernel=x", Err("control")),
            ("gpu_mem", "16\rkernel=x", Err("control")),
            ("dtparam", "\"a\\nkernel=x\"", Err("control")),
            ("a=b", "1", Err("key")),
            ("", "1", Err("key")),
            ("[all]", "1", Err("key")),
        ] {
            let read = values(key, text);
            match expected {
                Ok(expected) => assert_eq!(read.unwrap(), expected, "{key} {text}"),
                Err(part) => assert!(read.unwrap_err().contains(part), "{key} {text}"),
            }
        }
        let longest = "x".repeat(LINE - "a=".len());
        assert!(values("a", &longest).is_ok());
        assert!(values("a", &format!("{longest}x")).is_err());
    }

    #[test]
    fn a_target_cannot_set_boot_settings_that_choose_the_system() {
        for key in [
            "kernel",
            "cmdline",
            "initramfs",
            "auto_initramfs",
            "os_prefix",
            "OVERLAY_PREFIX",
            "armstub",
            "start_file",
            "fixup_file",
            "device_tree",
            "include",
        ] {
            assert!(is_forbidden(key), "{key}");
        }
        for key in ["gpu_mem", "dtoverlay", "device_tree_param", "start_x"] {
            assert!(!is_forbidden(key), "{key}");
        }
    }

    #[test]
    fn a_setting_is_written_as_the_variable_that_it_is_read_from() {
        for (key, text) in [
            ("gpu_mem", "16"),
            ("dtparam", "spi=on"),
            ("dtoverlay", "\"a,b=1\",\"c \\\"d\\\"\""),
            ("gpio", ""),
        ] {
            let read = values(key, text).unwrap();
            let variable = to_variable(key, &read);
            assert_eq!(variable.name, format!("HOST_CONFIG_{key}"));
            assert_eq!(variable.value, text);
        }
    }
}
