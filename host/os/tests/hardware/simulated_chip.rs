//! GPIO chips of the kernel's module gpio-sim.

use std::fs;
use std::path::PathBuf;

/// A chip of eight lines, of which the third is called `DOOR`. It is removed when this is dropped.
pub(crate) struct SimulatedChip {
    settings: PathBuf,
    label: String,
    /// Such as `gpiochip0`.
    pub(crate) name: String,
    /// Such as `gpio-sim.0`.
    device: String,
}

impl SimulatedChip {
    pub(crate) fn new(label: &str) -> SimulatedChip {
        let settings = PathBuf::from("/sys/kernel/config/gpio-sim").join(label);
        let bank = settings.join("bank");
        fs::create_dir_all(bank.join("line3")).unwrap();
        fs::write(bank.join("num_lines"), "8").unwrap();
        fs::write(bank.join("label"), label).unwrap();
        fs::write(bank.join("line3/name"), "DOOR").unwrap();
        fs::write(settings.join("live"), "1").unwrap();
        let read = |file: &str| {
            let text = fs::read_to_string(settings.join(file)).unwrap();
            text.trim().to_owned()
        };
        SimulatedChip {
            name: read("bank/chip_name"),
            device: read("dev_name"),
            label: label.to_owned(),
            settings,
        }
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    fn line(&self, number: u32, file: &str) -> PathBuf {
        let line = format!(
            "/sys/devices/platform/{}/{}/sim_gpio{number}/{file}",
            self.device, self.name
        );
        line.into()
    }

    /// Sets a line's voltage, as hardware connected to it does.
    pub(crate) fn drive(&self, number: u32, up: bool) {
        let pull = if up { "pull-up" } else { "pull-down" };
        fs::write(self.line(number, "pull"), pull).unwrap();
    }

    /// Whether a line's voltage is high.
    pub(crate) fn is_up(&self, number: u32) -> bool {
        let value = fs::read_to_string(self.line(number, "value")).unwrap();
        value.trim() == "1"
    }
}

impl Drop for SimulatedChip {
    fn drop(&mut self) {
        let _ = fs::write(self.settings.join("live"), "0");
        for folder in ["bank/line3", "bank", ""] {
            let _ = fs::remove_dir(self.settings.join(folder));
        }
    }
}
