//! The chips on I2C buses that the policy lets a plugin use, under names defined in the policy.
//!
//! ```toml
//! i2c = [{ name = "sensor", bus = 1, address = 0x48 }]    # or bus = "/dev/i2c-1", or the name of its adapter
//! ```

use std::collections::BTreeSet;

use os::BusId;
use serde::Deserialize;

use crate::hardware_names::{check_kernel_name, check_name};

/// The most chips for one plugin.
const CHIPS: usize = 64;
/// The range of chip addresses; the others have a meaning for the bus itself.
const LOWEST: u8 = 0x03;
const HIGHEST: u8 = 0x77;

/// Chips with their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct I2cGrants(Vec<I2cGrant>);

/// One chip.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct I2cGrant {
    /// The plugin's name for it.
    pub(crate) name: String,
    pub(crate) bus: BusId,
    /// The seven-bit address.
    pub(crate) address: u8,
}

impl I2cGrants {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the chip with the plugin's name for it.
    pub(crate) fn chip(&self, name: &str) -> Option<&I2cGrant> {
        self.0.iter().find(|grant| grant.name == name)
    }

    /// Checks the grants as written in the policy.
    ///
    /// # Errors
    /// What cannot be granted, and what to write instead.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.0.len() > CHIPS {
            let number = self.0.len();
            return Err(format!(
                "`i2c` has {number} chips, but at most {CHIPS} are allowed"
            ));
        }
        let mut names = BTreeSet::new();
        for I2cGrant { name, bus, address } in &self.0 {
            check_name("i2c", "chip", name)?;
            if !(LOWEST..=HIGHEST).contains(address) {
                return Err(format!(
                    "`i2c` has the address {address:#04x} for `{name}`: write one from {LOWEST:#04x} to {HIGHEST:#04x}"
                ));
            }
            if let BusId::Name(bus) = bus {
                check_kernel_name("i2c", "bus", bus)?;
                let number = bus.strip_prefix("/dev/i2c-");
                let is_bus = |number: &str| {
                    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                };
                if bus.starts_with('/') && !number.is_some_and(is_bus) {
                    return Err(format!(
                        "`i2c` has the bus `{bus}`: write its number, such as 1, its path, such as `/dev/i2c-1`, or the name of \
                         its adapter"
                    ));
                }
            }
            if !names.insert(name) {
                return Err(format!("`i2c` has two chips with the name `{name}`"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(grants: &str) -> Result<(), String> {
        let table: toml::Table = format!("i2c = [{grants}]").parse().unwrap();
        let grants: Result<I2cGrants, _> = table["i2c"].clone().try_into();
        grants.map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn valid_grants_are_accepted() {
        for grants in [
            "",
            r#"{ name = "sensor", bus = 1, address = 0x48 }"#,
            r#"{ name = "a", bus = "/dev/i2c-1", address = 0x03 }, { name = "b", bus = "/dev/i2c-1", address = 0x77 }"#,
            r#"{ name = "a", bus = "bcm2835 (i2c@7e804000)", address = 0x48 }"#,
        ] {
            assert_eq!(check(grants), Ok(()), "{grants}");
        }
    }

    #[test]
    fn invalid_grants_are_named() {
        for (grants, expected) in [
            (
                r#"{ name = "a b", bus = 1, address = 0x48 }"#,
                "a chip with the name \"a b\"",
            ),
            (
                r#"{ name = "a", bus = 1, address = 0x02 }"#,
                "the address 0x02 for `a`: write one from 0x03 to 0x77",
            ),
            (
                r#"{ name = "a", bus = 1, address = 0x78 }"#,
                "the address 0x78",
            ),
            (r#"{ name = "a", bus = 1, address = 0x148 }"#, "328"),
            (
                r#"{ name = "a", bus = "/dev/mem", address = 0x48 }"#,
                "the bus `/dev/mem`: write its number",
            ),
            (
                r#"{ name = "a", bus = "/dev/i2c-1/../mem", address = 0x48 }"#,
                "the bus `/dev/i2c-1/../mem`",
            ),
            (
                r#"{ name = "a", bus = "a\u001b", address = 0x48 }"#,
                "the bus \"a\\u{1b}\"",
            ),
            (
                r#"{ name = "a", bus = 1, address = 0x48 }, { name = "a", bus = 1, address = 0x49 }"#,
                "two chips with the name `a`",
            ),
        ] {
            let error = check(grants).unwrap_err();
            assert!(error.contains(expected), "{grants}: {error}");
        }
        let chip = r#"{ name = "a", bus = 1, address = 0x48 },"#;
        let error = check(&chip.repeat(CHIPS + 1)).unwrap_err();
        assert!(
            error.contains("65 chips, but at most 64 are allowed"),
            "{error}"
        );
    }
}
