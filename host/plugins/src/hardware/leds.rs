//! LEDs, through the files of the kernel's LED class, `/sys/class/leds/NAME/`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use plugin_protocol::LedError;

use super::led_memory::{LedHold, LedHolder, LedMemory};
use super::led_snapshot::{LedSnapshot, number};

/// The longest name of an LED in the kernel, in bytes.
const NAME: usize = 63;
/// The brightest value of an LED that does not report one.
const BRIGHTEST: u32 = 255;

/// The LEDs that one plugin can reach.
#[derive(Clone)]
pub(crate) struct Leds {
    /// The folder of the LED class.
    pub(crate) folder: PathBuf,
    pub(crate) memory: Arc<LedMemory>,
}

/// An LED that an instance holds. Dropping it restores the previous state.
pub(crate) struct Light {
    folder: PathBuf,
    /// The brightest value.
    pub(crate) most: u32,
    brightness: Option<u32>,
    _held: LedHold,
}

impl Leds {
    /// Returns the names of the existing LEDs that are granted (all if `granted` is `None`).
    pub(crate) fn names(&self, granted: Option<&BTreeSet<String>>) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.path().join("brightness").exists())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| granted.is_none_or(|granted| granted.contains(name)))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Takes the LED for `holder`, also from its kernel trigger. Calls `take_write` before it writes to the disk.
    pub(crate) fn open(
        &self,
        name: &str,
        granted: Option<&BTreeSet<String>>,
        holder: LedHolder,
        take_write: impl FnOnce() -> Result<(), String>,
    ) -> Result<Light, LedError> {
        let short: String = name.chars().take(NAME).collect();
        let not_found = || LedError::NotFound(format!("this device has no LED `{short}`"));
        // A name must be one entry of the folder, and must not lead elsewhere.
        if name.is_empty()
            || name.len() > NAME
            || name.starts_with('.')
            || name.contains(['/', '\0'])
        {
            return Err(not_found());
        }
        // Only reveal the existence of granted LEDs.
        if granted.is_some_and(|granted| !granted.contains(name)) {
            return Err(LedError::NotFound(format!(
                "the policy does not grant the LED `{name}`: its `leds` does not name it"
            )));
        }
        let folder = self.folder.join(name);
        if !folder.join("brightness").exists() {
            return Err(not_found());
        }
        let other = |error: io::Error| LedError::Other(format!("LED `{name}`: {error}"));
        // What it shows is noted on the disk if it is free. Its own files are in memory, and cost the disk nothing.
        let before = || LedSnapshot::read(&folder);
        let take_write = || take_write().map_err(io::Error::other);
        let held = self.memory.hold(&folder, holder, before, take_write);
        let Some(held) = held.map_err(other)? else {
            return Err(LedError::Busy(format!(
                "another call holds the LED `{name}`"
            )));
        };
        // From here on, dropping `held` restores the state.
        if folder.join("trigger").exists() {
            fs::write(folder.join("trigger"), "none").map_err(other)?;
        }
        let most = number(&folder.join("max_brightness")).unwrap_or(BRIGHTEST);
        Ok(Light {
            folder,
            most,
            brightness: None,
            _held: held,
        })
    }
}

impl Light {
    pub(crate) fn set(&mut self, brightness: u32) -> io::Result<()> {
        let brightness = brightness.min(self.most);
        if self.brightness != Some(brightness) {
            fs::write(self.folder.join("brightness"), brightness.to_string())?;
            self.brightness = Some(brightness);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;
    use crate::bounds::HOST_LINES_AT_ONCE;
    use crate::log_lines::PluginLogs;

    /// Creates an LED in the shape of the kernel's.
    fn led(class: &Path, name: &str) -> PathBuf {
        let folder = class.join(name);
        fs::create_dir_all(&folder).unwrap();
        for (file, content) in [
            ("brightness", "7\n"),
            ("max_brightness", "100\n"),
            ("trigger", "none [mmc0] timer\n"),
        ] {
            fs::write(folder.join(file), content).unwrap();
        }
        folder
    }

    fn shown(folder: &Path) -> (String, String) {
        let read = |name| fs::read_to_string(folder.join(name)).unwrap();
        (read("brightness"), read("trigger"))
    }

    struct Fixture {
        root: tempfile::TempDir,
        leds: Leds,
    }

    fn open(
        leds: &Leds,
        name: &str,
        granted: Option<&BTreeSet<String>>,
    ) -> Result<Light, LedError> {
        let holder = LedHolder {
            plugin: "acme".into(),
            lines: PluginLogs::default().share().host_lines,
        };
        leds.open(name, granted, holder, || Ok(()))
    }

    fn fixture() -> Fixture {
        let root = tempfile::tempdir().unwrap();
        let memory = Arc::new(LedMemory::open(&root.path().join("state")));
        let leds = Leds {
            folder: root.path().join("leds"),
            memory,
        };
        led(&leds.folder, "ACT");
        led(&leds.folder, "PWR");
        Fixture { root, leds }
    }

    #[test]
    fn an_led_shows_again_what_it_showed_before() {
        let Fixture { root: _root, leds } = fixture();
        let folder = leds.folder.join("ACT");
        let mut light = open(&leds, "ACT", None).unwrap();
        assert_eq!(light.most, 100);
        light.set(1000).unwrap();
        assert_eq!(shown(&folder), ("100".to_owned(), "none".to_owned()));
        assert!(matches!(open(&leds, "ACT", None), Err(LedError::Busy(_))));
        drop(light);
        assert_eq!(shown(&folder), ("7".to_owned(), "mmc0".to_owned()));
        assert!(open(&leds, "ACT", None).is_ok());
    }

    #[test]
    fn after_a_kill_the_next_start_restores() {
        let Fixture { root, leds } = fixture();
        let folder = leds.folder.join("ACT");
        fs::write(folder.join("delay_on"), "50\n").unwrap();
        let mut light = open(&leds, "ACT", None).unwrap();
        light.set(1).unwrap();
        fs::remove_file(folder.join("delay_on")).unwrap();
        // A kill runs no destructors.
        std::mem::forget(light);
        let memory = LedMemory::open(&root.path().join("state"));
        assert_eq!(shown(&folder), ("7".to_owned(), "mmc0".to_owned()));
        assert_eq!(fs::read_to_string(folder.join("delay_on")).unwrap(), "50");
        assert_eq!(
            fs::read_dir(root.path().join("state/leds"))
                .unwrap()
                .count(),
            0
        );
        drop(memory);
    }

    #[tokio::test(start_paused = true)]
    async fn a_note_stays_for_a_minute_after_its_led_was_last_held() {
        let Fixture { root, leds } = fixture();
        let notes = || {
            let folder = fs::read_dir(root.path().join("state/leds"));
            folder.unwrap().count()
        };
        let flash = || drop(open(&leds, "ACT", None).unwrap());
        flash();
        sleep(Duration::from_secs(40)).await;
        assert_eq!(notes(), 1);
        flash();
        sleep(Duration::from_secs(40)).await;
        assert_eq!(notes(), 1);
        sleep(Duration::from_secs(40)).await;
        assert_eq!(notes(), 0);

        flash();
        let light = open(&leds, "ACT", None).unwrap();
        sleep(Duration::from_secs(120)).await;
        assert_eq!(notes(), 1, "it is held");
        drop(light);
        sleep(Duration::from_secs(120)).await;
        assert_eq!(notes(), 0);
        // The supervisor stops.
        flash();
        leds.memory.finish();
        assert_eq!(notes(), 0);
    }

    /// With a driver that fails, a plugin that opens its LED in a loop does not fill the log.
    #[tokio::test(start_paused = true)]
    async fn each_line_about_an_led_that_is_not_restored_is_one_of_the_plugins_share() {
        let Fixture { root: _root, leds } = fixture();
        let brightness = leds.folder.join("ACT/brightness");
        let lines = PluginLogs::default().share().host_lines;
        for _ in 0..3 {
            let holder = LedHolder {
                plugin: "acme".into(),
                lines: lines.clone(),
            };
            let light = leds.open("ACT", None, holder, || Ok(())).unwrap();
            // A folder cannot be written as the kernel's file can.
            fs::remove_file(&brightness).unwrap();
            fs::create_dir(&brightness).unwrap();
            drop(light);
            leds.memory.finish();
            fs::remove_dir(&brightness).unwrap();
            fs::write(&brightness, "7\n").unwrap();
        }
        let left = (0..).take_while(|_| lines.take("acme")).count();
        assert_eq!(left, (HOST_LINES_AT_ONCE / 2) as usize - 3);
    }

    #[test]
    fn only_leds_that_are_there_and_granted_can_be_had() {
        let Fixture { root, leds } = fixture();
        fs::create_dir(leds.folder.join("no-led")).unwrap();
        led(root.path(), "outside");
        let granted = BTreeSet::from(["PWR".to_owned(), "gone".to_owned()]);
        assert_eq!(leds.names(None).unwrap(), ["ACT", "PWR"]);
        assert_eq!(leds.names(Some(&granted)).unwrap(), ["PWR"]);
        for name in [
            "ACT",
            "gone",
            "",
            ".",
            "..",
            "../outside",
            "/etc",
            "PWR/../PWR",
        ] {
            assert!(
                matches!(
                    open(&leds, name, Some(&granted)),
                    Err(LedError::NotFound(_))
                ),
                "{name}"
            );
        }
        assert!(matches!(
            open(&leds, "../outside", None),
            Err(LedError::NotFound(_))
        ));
        let none = Leds {
            folder: root.path().join("nothing"),
            memory: leds.memory,
        };
        assert!(none.names(None).unwrap().is_empty());
    }
}
