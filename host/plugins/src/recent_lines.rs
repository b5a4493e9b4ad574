//! The last lines of each plugin, in memory, for people without access to the host's journal. Each plugin has a limit,
//! and all plugins have a common one, so that they do not use up the device's memory; the plugin with the most lines
//! makes room.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use device_types::{Moment, PluginLog, PluginLogLevel, PluginLogLine};
use parking_lot::Mutex;

use crate::bounds::{MOST_FILES, RECENT_BYTES, RECENT_BYTES_OF_ALL, RECENT_LINES};

/// The last lines of all plugins. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentLines(Arc<Mutex<LinesByPlugin>>);

#[derive(Debug, Default)]
struct LinesByPlugin {
    plugins: BTreeMap<String, PluginLines>,
    bytes: usize,
}

/// The lines of one plugin.
#[derive(Debug, Default)]
struct PluginLines {
    lines: VecDeque<PluginLogLine>,
    bytes: usize,
    newest: u64,
}

/// Returns how much memory a line takes.
fn cost(line: &PluginLogLine) -> usize {
    size_of::<PluginLogLine>() + line.message.capacity()
}

impl RecentLines {
    /// Adds a line, which must already be limited in length and be a single line.
    pub(crate) fn add(&self, plugin: &str, level: PluginLogLevel, mut message: String) {
        message.shrink_to_fit();
        let mut all = self.0.lock();
        let LinesByPlugin { plugins, bytes } = &mut *all;
        if !plugins.contains_key(plugin) {
            if plugins.len() >= MOST_FILES {
                return;
            }
            plugins.insert(plugin.to_owned(), PluginLines::default());
        }
        let Some(own) = plugins.get_mut(plugin) else {
            return;
        };
        let before = own.bytes;
        own.newest += 1;
        let line = PluginLogLine {
            number: own.newest,
            time: Moment::now(),
            level,
            message,
        };
        own.bytes += cost(&line);
        own.lines.push_back(line);
        while own.lines.len() > RECENT_LINES || own.bytes > RECENT_BYTES {
            own.drop_oldest();
        }
        *bytes = *bytes - before + own.bytes;
        all.make_room();
    }

    /// Returns the lines of a plugin after the one with this number.
    pub(crate) fn after(&self, plugin: &str, number: u64) -> PluginLog {
        let all = self.0.lock();
        let Some(own) = all.plugins.get(plugin) else {
            return PluginLog::default();
        };
        let lines = own.lines.iter().filter(|line| line.number > number);
        PluginLog {
            newest: own.newest,
            lines: lines.cloned().collect(),
        }
    }

    /// Drops the lines of plugins that no longer exist.
    pub(crate) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        let mut all = self.0.lock();
        all.plugins.retain(|plugin, _| is_there(plugin));
        all.bytes = all.plugins.values().map(|own| own.bytes).sum();
    }
}

impl LinesByPlugin {
    fn make_room(&mut self) {
        while self.bytes > RECENT_BYTES_OF_ALL {
            let Some(largest) = self.plugins.values_mut().max_by_key(|own| own.bytes) else {
                return;
            };
            let before = largest.bytes;
            largest.drop_oldest();
            if largest.bytes == before {
                return;
            }
            self.bytes -= before - largest.bytes;
        }
    }
}

impl PluginLines {
    fn drop_oldest(&mut self) {
        if let Some(line) = self.lines.pop_front() {
            self.bytes -= cost(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use plugin_protocol::text::LONGEST;

    use super::*;

    fn add(lines: &RecentLines, plugin: &str, message: impl Into<String>) {
        lines.add(plugin, PluginLogLevel::Info, message.into());
    }

    fn numbers(lines: &RecentLines, plugin: &str) -> Vec<u64> {
        let log = lines.after(plugin, 0);
        log.lines.iter().map(|line| line.number).collect()
    }

    #[test]
    fn a_plugin_has_its_last_lines_and_a_reader_those_after_the_last_one_read() {
        let lines = RecentLines::default();
        for number in 1..=RECENT_LINES + 5 {
            add(&lines, "a", format!("line {number}"));
        }
        let newest = RECENT_LINES as u64 + 5;
        assert_eq!(numbers(&lines, "a"), (6..=newest).collect::<Vec<_>>());
        let log = lines.after("a", newest - 1);
        assert_eq!(log.newest, newest);
        let messages: Vec<_> = log.lines.iter().map(|line| &*line.message).collect();
        assert_eq!(messages, [format!("line {newest}")]);
        assert_eq!(lines.after("a", newest).lines, []);
        assert_eq!(lines.after("b", 0), PluginLog::default());
    }

    #[test]
    fn lines_of_a_plugin_and_of_all_take_bounded_memory() {
        let lines = RecentLines::default();
        add(&lines, "quiet", "one");
        let long = "x".repeat(LONGEST);
        for _ in 0..RECENT_LINES {
            add(&lines, "a", long.clone());
        }
        assert!(lines.0.lock().plugins["a"].bytes <= RECENT_BYTES);
        assert!(!numbers(&lines, "a").is_empty());
        for plugin in 0..2 * MOST_FILES {
            for _ in 0..4 {
                add(&lines, &format!("p{plugin}"), long.clone());
            }
        }
        let all = lines.0.lock();
        assert!(all.plugins.len() <= MOST_FILES);
        assert!(all.bytes <= RECENT_BYTES_OF_ALL);
        let counted: usize = all.plugins.values().map(|own| own.bytes).sum();
        assert_eq!(counted, all.bytes);
        drop(all);
        // The plugin that floods makes room, not the one that writes little.
        assert_eq!(numbers(&lines, "quiet"), [1]);
        lines.retain(|plugin| plugin == "quiet");
        assert_eq!(numbers(&lines, "quiet"), [1]);
        assert_eq!(lines.after("a", 0), PluginLog::default());
        add(&lines, "a", "again");
        assert_eq!(numbers(&lines, "a"), [1]);
    }
}
