//! LEDs, through the files of the kernel's LED class, `/sys/class/leds/NAME/`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use plugin_protocol::{LedError, LedNames, LedOpen, LedSet, OpenLed, Provide};
use serde::{Deserialize, Serialize};

use super::{InstanceCall, Refusal};
use crate::holdings::HeldResource;
use crate::provision::led_memory::{LedHold, LedHolder, LedMemory};

/// The longest name of an LED in the kernel, in bytes.
const NAME: usize = 63;
/// The most that is read of a file; the list of triggers is the longest.
const FILE: u64 = 64 << 10;
/// The brightest value of an LED that does not report one.
const BRIGHTEST: u32 = 255;
/// Files that only exist with some triggers and would be lost with them.
const TIMING: [&str; 2] = ["delay_on", "delay_off"];

/// The LEDs that one plugin can reach.
#[derive(Clone)]
pub(crate) struct Leds {
    /// The folder of the LED class.
    pub(crate) folder: PathBuf,
    pub(crate) memory: Arc<LedMemory>,
}

/// The state of an LED before a plugin took it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedSnapshot {
    brightness: u32,
    /// The kernel's trigger, or `none`; `None` if the LED has no such file.
    trigger: Option<String>,
    /// The trigger's own settings.
    timing: Vec<(String, String)>,
}

/// An LED that an instance holds. Dropping it restores the previous state.
pub(crate) struct Light {
    folder: PathBuf,
    most: u32,
    brightness: Option<u32>,
    _held: LedHold,
}

impl Leds {
    /// Returns the names of the existing LEDs that are granted (all if `granted` is `None`).
    fn names(&self, granted: Option<&BTreeSet<String>>) -> io::Result<Vec<String>> {
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
    fn open(
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
    fn set(&mut self, brightness: u32) -> io::Result<()> {
        let brightness = brightness.min(self.most);
        if self.brightness != Some(brightness) {
            fs::write(self.folder.join("brightness"), brightness.to_string())?;
            self.brightness = Some(brightness);
        }
        Ok(())
    }
}

impl LedSnapshot {
    fn read(folder: &Path) -> io::Result<LedSnapshot> {
        let trigger = match text(&folder.join("trigger")) {
            Ok(list) => Some(chosen(&list).to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let timing = TIMING
            .iter()
            .filter_map(|name| {
                Some((
                    (*name).to_owned(),
                    text(&folder.join(name)).ok()?.trim().to_owned(),
                ))
            })
            .collect();
        Ok(LedSnapshot {
            brightness: number(&folder.join("brightness"))?,
            trigger,
            timing,
        })
    }

    /// Returns whether both states, once restored, show the same. A trigger of the kernel changes the brightness all the
    /// time, so it does not matter what it was at the moment.
    pub(crate) fn shows_the_same_as(&self, other: &LedSnapshot) -> bool {
        let has_trigger = self.trigger.as_deref().is_some_and(|name| name != "none");
        self.trigger == other.trigger
            && self.timing == other.timing
            && (has_trigger || self.brightness == other.brightness)
    }

    /// Restores the state. The trigger comes last, since it drives the brightness from then on.
    pub(crate) fn restore(&self, folder: &Path) -> io::Result<()> {
        fs::write(folder.join("brightness"), self.brightness.to_string())?;
        if let Some(trigger) = &self.trigger {
            fs::write(folder.join("trigger"), trigger)?;
            for (name, value) in &self.timing {
                fs::write(folder.join(name), value)?;
            }
        }
        Ok(())
    }
}

/// Returns the word in brackets, as in `none [mmc0] timer`. The kernel always has one; elsewhere the word may be the
/// only one.
fn chosen(list: &str) -> &str {
    let mut words = list.split_whitespace();
    let bracketed = words
        .clone()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    bracketed.or_else(|| words.next()).unwrap_or("none")
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(FILE).read_to_string(&mut text)?;
    Ok(text)
}

fn number(path: &Path) -> io::Result<u32> {
    text(path)?
        .trim()
        .parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a number"))
}

impl InstanceCall<'_> {
    async fn led_names(&self) -> Result<Vec<String>, LedError> {
        let context = Arc::clone(self.plugin);
        let names = move || context.hardware.leds.names(context.grants.leds.as_ref());
        let names = self
            .plugin
            .share
            .jobs
            .run(names)
            .await
            .ok_or_else(stopping)?;
        names.map_err(|error| LedError::Other(format!("the LEDs cannot be listed: {error}")))
    }

    async fn open_led(&self, name: String) -> Result<OpenLed, LedError> {
        // The LED's state may have to be written to the disk first, which can take time.
        let context = Arc::clone(self.plugin);
        let open = move || {
            let take_write = || {
                let written = context.services.data.take_write(&context.data_owner());
                written.map_err(|why| {
                    format!(
                        "opening it writes a note to the disk, and {why}: open it less often, or keep it open"
                    )
                })
            };
            let holder = LedHolder {
                plugin: Arc::clone(&context.name),
                lines: context.share.log.host_lines.clone(),
            };
            let leds = &context.hardware.leds;
            leds.open(&name, context.grants.leds.as_ref(), holder, take_write)
        };
        let light = self
            .plugin
            .share
            .jobs
            .run(open)
            .await
            .ok_or_else(stopping)??;
        let max = light.most;
        self.holdings
            .add(HeldResource::Light(Arc::new(Mutex::new(light))))
            .map(|light| OpenLed { light, max })
            .map_err(|_| LedError::Other("too many LEDs at a time".to_owned()))
    }
}

impl Provide<LedNames, Refusal> for InstanceCall<'_> {
    async fn provide(&self, _: LedNames) -> Result<Result<Vec<String>, LedError>, Refusal> {
        Ok(self.led_names().await)
    }
}

impl Provide<LedOpen, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        LedOpen { name }: LedOpen,
    ) -> Result<Result<OpenLed, LedError>, Refusal> {
        Ok(self.open_led(name).await)
    }
}

impl Provide<LedSet, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        LedSet { light, brightness }: LedSet,
    ) -> Result<Result<(), LedError>, Refusal> {
        let light = self.holdings.light(light)?;
        // A driver may take time, during which others must be answered.
        let set = move || {
            let mut light = light.lock();
            light.set(brightness)
        };
        Ok(match self.plugin.share.jobs.run(set).await {
            Some(set) => set.map_err(|error| LedError::Other(error.to_string())),
            None => Err(stopping()),
        })
    }
}

fn stopping() -> LedError {
    LedError::Other("the supervisor is stopping".to_owned())
}

#[cfg(test)]
mod tests {
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
    fn a_trigger_and_not_the_brightness_of_the_moment_is_what_an_led_shows() {
        let snapshot = |brightness, trigger: Option<&str>, delay_on: &str| LedSnapshot {
            brightness,
            trigger: trigger.map(str::to_owned),
            timing: vec![("delay_on".to_owned(), delay_on.to_owned())],
        };
        for (one, other, expected) in [
            ((7, None, "1"), (7, None, "1"), true),
            ((7, None, "1"), (8, None, "1"), false),
            ((7, Some("none"), "1"), (7, Some("none"), "1"), true),
            ((7, Some("none"), "1"), (8, Some("none"), "1"), false),
            ((7, Some("mmc0"), "1"), (8, Some("mmc0"), "1"), true),
            ((7, Some("mmc0"), "1"), (7, Some("none"), "1"), false),
            ((7, Some("none"), "1"), (7, Some("mmc0"), "1"), false),
            ((7, Some("timer"), "1"), (7, Some("timer"), "2"), false),
        ] {
            let same = snapshot(one.0, one.1, one.2)
                .shows_the_same_as(&snapshot(other.0, other.1, other.2));
            assert_eq!(same, expected, "{one:?} {other:?}");
        }
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

    #[test]
    fn the_trigger_in_brackets_is_the_chosen_one() {
        for (list, expected) in [
            ("none [mmc0] timer\n", "mmc0"),
            ("mmc0\n", "mmc0"),
            ("[none]", "none"),
            ("", "none"),
        ] {
            assert_eq!(chosen(list), expected);
        }
    }
}
