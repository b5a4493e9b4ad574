//! What a plugin has done on the device besides answering, for tests: the lines that it has logged, the values that it has
//! queued for the cloud, the units that it has restarted, and the brightnesses that it has given LEDs.
//!
//! Only what succeeded is recorded. A plugin is hostile until it is tested, so each list has a bound.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use plugin_test_host::protocol::text::{LONGEST, one_line};
use plugin_test_host::protocol::{
    CapabilityAnswer as Answer, CapabilityCall as Call, CloudQueue, Handle, InstanceId, LedOpen,
    LedSet, LogEntry, LogLevel, OpenLed, UnitsRestart,
};

/// The most entries of a list.
const ENTRIES: usize = 1024;
/// The most bytes of the entries of a list together.
const BYTES: usize = 1 << 20;

/// The effects since the last time that a test compared them.
#[derive(Default)]
pub(crate) struct Effects(Mutex<EffectLists>);

#[derive(Default)]
struct EffectLists {
    log: EffectList<String>,
    queue: EffectList<String>,
    restarts: EffectList<String>,
    brightnesses: EffectList<LedBrightness>,
    /// The LEDs that instances hold, by name: only one instance holds an LED at a time.
    lights: BTreeMap<String, HeldLight>,
}

/// A brightness that the plugin has given the LED of this name.
pub(crate) type LedBrightness = (String, u32);

struct HeldLight {
    instance: InstanceId,
    light: Handle,
    max: u32,
}

/// Effects of one kind, oldest first.
pub(crate) struct EffectList<T> {
    pub(crate) entries: Vec<T>,
    /// How many more there were than the list has room for.
    pub(crate) missing: usize,
    bytes: usize,
}

impl<T> Default for EffectList<T> {
    fn default() -> Self {
        EffectList {
            entries: Vec::new(),
            missing: 0,
            bytes: 0,
        }
    }
}

impl<T> EffectList<T> {
    fn add(&mut self, entry: T, length: usize) {
        let bytes = self.bytes.saturating_add(length);
        if self.entries.len() == ENTRIES || bytes > BYTES {
            self.missing = self.missing.saturating_add(1);
            return;
        }
        self.bytes = bytes;
        self.entries.push(entry);
    }
}

impl EffectList<String> {
    fn add_line(&mut self, line: String) {
        let length = line.len();
        self.add(line, length);
    }
}

impl Effects {
    /// Returns whether a call that succeeds may have such an effect.
    pub(super) fn may_follow(call: &Call) -> bool {
        matches!(
            call,
            Call::CloudQueue(_) | Call::UnitsRestart(_) | Call::LedOpen(_) | Call::LedSet(_)
        )
    }

    /// Records the effect of a call that was answered.
    pub(super) fn record(&self, instance: InstanceId, call: &Call, answer: &Answer) {
        let mut lists = self.0.lock();
        match (call, answer) {
            (Call::CloudQueue(CloudQueue { kind, values }), Answer::CloudQueue(Ok(()))) => {
                lists.queue.add_line(queue_line(kind, values.clone()));
            }
            (Call::UnitsRestart(UnitsRestart { unit }), Answer::UnitsRestart(Ok(()))) => {
                lists.restarts.add_line(unit_line(unit));
            }
            (Call::LedOpen(LedOpen { name }), Answer::LedOpen(Ok(OpenLed { light, max }))) => {
                let held = HeldLight {
                    instance,
                    light: *light,
                    max: *max,
                };
                lists.lights.insert(name.clone(), held);
            }
            (Call::LedSet(LedSet { light, brightness }), Answer::LedSet(Ok(()))) => {
                lists.add_brightness(instance, *light, *brightness);
            }
            _ => {}
        }
    }

    /// Records an entry of the log.
    pub(super) fn record_log(&self, entry: &LogEntry) {
        let line = match entry {
            LogEntry::Line(LogLevel::Debug, text) => log_line("debug", text),
            LogEntry::Line(LogLevel::Info, text) => log_line("info", text),
            LogEntry::Line(LogLevel::Warn, text) => log_line("warn", text),
            LogEntry::Line(LogLevel::Error, text) => log_line("error", text),
            // In the device's words.
            LogEntry::Lost(lines) => log_line(
                "warn",
                &format!("{lines} more lines of this call were not written"),
            ),
        };
        self.0.lock().log.add_line(line);
    }

    /// Forgets the LEDs of an instance that has ended.
    pub(super) fn forget(&self, instance: InstanceId) {
        let mut lists = self.0.lock();
        lists.lights.retain(|_, held| held.instance != instance);
    }

    /// Returns the lines of the log since the last time.
    pub(crate) fn take_log(&self) -> EffectList<String> {
        std::mem::take(&mut self.0.lock().log)
    }

    /// Returns the values that were queued for the cloud since the last time, as [`queue_line`] writes them.
    pub(crate) fn take_queue(&self) -> EffectList<String> {
        std::mem::take(&mut self.0.lock().queue)
    }

    /// Returns the units that were restarted since the last time.
    pub(crate) fn take_restarts(&self) -> EffectList<String> {
        std::mem::take(&mut self.0.lock().restarts)
    }

    /// Returns the brightnesses that LEDs were given since the last time.
    pub(crate) fn take_brightnesses(&self) -> EffectList<LedBrightness> {
        std::mem::take(&mut self.0.lock().brightnesses)
    }
}

impl EffectLists {
    fn add_brightness(&mut self, instance: InstanceId, light: Handle, brightness: u32) {
        let mut lights = self.lights.iter();
        let held = lights.find(|(_, held)| held.instance == instance && held.light == light);
        if let Some((name, HeldLight { max, .. })) = held {
            let name = name.clone();
            let length = name.len() + size_of::<LedBrightness>();
            let brightness = brightness.min(*max);
            self.brightnesses.add((name, brightness), length);
        }
    }
}

/// Writes values for the cloud as one line.
pub(crate) fn queue_line(kind: &str, mut values: Vec<(String, String)>) -> String {
    values.sort();
    let values = values
        .iter()
        .map(|(name, value)| format!("{name} = {value:?}"));
    let values: Vec<String> = values.collect();
    // A longer line has no room in the list, so what is compared is whole.
    one_line(&format!("{kind}: {}", values.join(", ")), BYTES)
}

/// Writes the name of a unit as one line.
pub(crate) fn unit_line(unit: &str) -> String {
    one_line(unit, LONGEST)
}

/// Writes a line of the log with its level.
pub(crate) fn log_line(level: &str, text: &str) -> String {
    format!("{level}: {}", one_line(text, LONGEST))
}

#[cfg(test)]
mod tests {
    use plugin_test_host::protocol::{CloudRefusal, LedError, UnitError};

    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn what_succeeded_is_recorded_once_in_its_order() {
        let effects = Effects::default();
        let kind = "device_tag".to_owned();
        let values = vec![pair("value", "north\n"), pair("tag_key", "site")];
        let queue = Call::from(CloudQueue { kind, values });
        let restart = Call::from(UnitsRestart {
            unit: "vpn.service".to_owned(),
        });
        let one = InstanceId(1);
        let gone = || "it is not there".to_owned();
        for (call, answer) in [
            (
                &queue,
                Answer::CloudQueue(Err(CloudRefusal::Refused(gone()))),
            ),
            (&queue, Answer::CloudQueue(Ok(()))),
            (
                &restart,
                Answer::UnitsRestart(Err(UnitError::NotGranted(gone()))),
            ),
            (&restart, Answer::UnitsRestart(Ok(()))),
        ] {
            assert!(Effects::may_follow(call));
            effects.record(one, call, &answer);
        }
        let queued = effects.take_queue();
        assert_eq!(
            queued.entries,
            ["device_tag: tag_key = \"site\", value = \"north\\n\""]
        );
        assert_eq!(effects.take_restarts().entries, ["vpn.service"]);
        assert!(effects.take_queue().entries.is_empty());

        effects.record_log(&LogEntry::Line(LogLevel::Warn, "one\ntwo".to_owned()));
        effects.record_log(&LogEntry::Lost(3));
        assert_eq!(
            effects.take_log().entries,
            [
                "warn: one\\ntwo",
                "warn: 3 more lines of this call were not written"
            ]
        );
    }

    #[test]
    fn a_brightness_belongs_to_the_led_that_the_instance_holds() {
        let effects = Effects::default();
        let open = |instance, name: &str, light| {
            let name = name.to_owned();
            let light = Handle(light);
            let answer = Answer::LedOpen(Ok(OpenLed { light, max: 5 }));
            effects.record(InstanceId(instance), &LedOpen { name }.into(), &answer);
        };
        let set = |instance, light, brightness, answer: Result<(), LedError>| {
            let light = Handle(light);
            let call = LedSet { light, brightness }.into();
            effects.record(InstanceId(instance), &call, &Answer::LedSet(answer));
        };
        open(1, "ACT", 7);
        open(1, "PWR", 8);
        open(2, "NET", 7);
        set(1, 7, u32::MAX, Ok(()));
        set(1, 8, 1, Ok(()));
        set(2, 7, 2, Ok(()));
        set(2, 8, 3, Ok(()));
        set(1, 7, 4, Err(LedError::Other("it burns".to_owned())));
        effects.forget(InstanceId(1));
        set(1, 7, 5, Ok(()));
        let expected = [("ACT", 5), ("PWR", 1), ("NET", 2)];
        let expected = expected.map(|(name, brightness)| (name.to_owned(), brightness));
        assert_eq!(effects.take_brightnesses().entries, expected);
        // An LED that is opened again and again is one LED.
        for light in 0..1000 {
            open(3, "ACT", light);
        }
        assert_eq!(effects.0.lock().lights.len(), 2);
    }

    #[test]
    fn effects_of_any_number_and_size_are_recorded_within_bounds() {
        let effects = Effects::default();
        let line = |length| LogEntry::Line(LogLevel::Info, "x".repeat(length));
        for _ in 0..=ENTRIES {
            effects.record_log(&line(1));
        }
        let log = effects.take_log();
        assert_eq!((log.entries.len(), log.missing), (ENTRIES, 1));
        for _ in 0..ENTRIES {
            effects.record_log(&line(1 << 20));
        }
        let log = effects.take_log();
        let bytes: usize = log.entries.iter().map(String::len).sum();
        assert!(bytes <= BYTES, "{bytes}");
        assert_eq!(log.entries.len() + log.missing, ENTRIES);
        assert!(log.missing > 0);
    }
}
