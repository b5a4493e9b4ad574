//! GPIO lines and I2C chips of the device, in memory. Their names in `device.toml` are those that the plugin uses.

use serde::Deserialize;
use supervisor_testing::Host;

/// The address of every chip: each is the only one on its bus.
pub(crate) const I2C_ADDRESS: u8 = 0x48;

/// Returns the name of a chip's bus.
pub(crate) fn i2c_bus(chip: &str) -> String {
    format!("bus of {chip}")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GpioLine {
    direction: GpioDirection,
    #[serde(default)]
    on: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum GpioDirection {
    In,
    Out,
}

impl GpioLine {
    /// Returns the policy's entry for this line.
    pub(super) fn grant(&self, name: &str) -> toml::Value {
        let direction = match self.direction {
            GpioDirection::In => "in",
            GpioDirection::Out => "out",
        };
        let mut grant = toml::Table::new();
        for (key, value) in [
            ("name", name),
            ("chip", "simulated"),
            ("line", name),
            ("direction", direction),
        ] {
            grant.insert(key.to_owned(), value.into());
        }
        grant.into()
    }

    pub(super) fn add_to(&self, host: Host, name: &str) -> Host {
        host.gpio_line(name, self.on)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct I2cChip {
    /// The first registers; the others are 0.
    #[serde(default)]
    registers: Vec<u8>,
}

impl I2cChip {
    /// Returns the policy's entry for a chip.
    pub(super) fn grant(name: &str) -> toml::Value {
        let mut grant = toml::Table::new();
        grant.insert("name".to_owned(), name.into());
        grant.insert("bus".to_owned(), i2c_bus(name).into());
        grant.insert("address".to_owned(), i64::from(I2C_ADDRESS).into());
        grant.into()
    }
    pub(super) fn add_to(&self, host: Host, name: &str) -> Host {
        host.i2c_chip(&i2c_bus(name), I2C_ADDRESS, &self.registers)
    }
}
