//! Limits how much plugins write: each write to their small store, and each note that is written about an LED that they
//! open, goes to the disk at once, which is flash that wears out, and the store is one database for all. Each plugin has
//! its own limits for bursts and over time, which do not affect other plugins.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Writes per second of one plugin, over time.
const WRITES_A_SECOND: f64 = 10.0;
/// Writes of one plugin at once, after it wrote nothing for a while.
const WRITES_AT_ONCE: f64 = 100.0;
/// Bytes per second of one plugin, over time: 10 MiB an hour.
const BYTES_A_SECOND: f64 = 10.0 * 1024.0 * 1024.0 / 3600.0;
/// Bytes of one plugin at once: twice its maximum storage.
const BYTES_AT_ONCE: f64 = 2.0 * 1024.0 * 1024.0;
/// The cost of a write, at least: a page of the database.
const BYTES_A_WRITE: usize = 4096;

/// The remaining allowances of the plugins, by name.
#[derive(Debug, Default)]
pub(crate) struct PluginWrites(Mutex<BTreeMap<String, Allowance>>);

/// The remaining allowance of one plugin.
#[derive(Debug)]
struct Allowance {
    writes: f64,
    bytes: f64,
    at: Instant,
}

impl PluginWrites {
    /// Takes one write of this many bytes from the plugin's allowance; returns the reason if that is too much.
    pub(crate) fn take(&self, plugin: &str, bytes: usize) -> Result<(), String> {
        let mut all = self.0.lock();
        let now = Instant::now();
        let allowance = all.entry(plugin.to_owned()).or_insert(Allowance {
            writes: WRITES_AT_ONCE,
            bytes: BYTES_AT_ONCE,
            at: now,
        });
        let passed = now.saturating_duration_since(allowance.at).as_secs_f64();
        let grown = |left: f64, a_second: f64, most: f64| (left + passed * a_second).min(most);
        allowance.writes = grown(allowance.writes, WRITES_A_SECOND, WRITES_AT_ONCE);
        allowance.bytes = grown(allowance.bytes, BYTES_A_SECOND, BYTES_AT_ONCE);
        allowance.at = now;
        let cost = cost(bytes);
        if allowance.writes < 1.0 {
            return Err(format!(
                "the plugin writes more than {WRITES_A_SECOND} times a second"
            ));
        }
        if allowance.bytes < cost {
            return Err("the plugin writes more than 10 MiB an hour".to_owned());
        }
        allowance.writes -= 1.0;
        allowance.bytes -= cost;
        Ok(())
    }

    /// Gives back the allowance for a write that was not made.
    pub(crate) fn give_back(&self, plugin: &str, bytes: usize) {
        if let Some(allowance) = self.0.lock().get_mut(plugin) {
            allowance.writes += 1.0;
            allowance.bytes += cost(bytes);
        }
    }
}

/// Returns the cost of a write of this many bytes. A value is at most 64 KiB, far within the exact range of a float.
fn cost(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes.max(BYTES_A_WRITE)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_plugin_writes_so_often_and_no_more() {
        let writes = PluginWrites::default();
        for _ in 0..100 {
            writes.take("a", 10).unwrap();
        }
        let refused = writes.take("a", 10).unwrap_err();
        assert!(refused.contains("10 times a second"), "{refused}");
        writes.take("b", 10).unwrap();
        writes.give_back("a", 10);
        writes.take("a", 10).unwrap();
        assert!(writes.take("a", 10).is_err());
        tokio::time::advance(Duration::from_secs(1)).await;
        let count = (0..100).filter(|_| writes.take("a", 10).is_ok()).count();
        assert_eq!(count, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_writes_so_much_and_no_more() {
        let writes = PluginWrites::default();
        let large = 64 << 10;
        let burst = (0..100).filter(|_| writes.take("a", large).is_ok());
        assert_eq!(burst.count(), 32);
        // In an hour of trying it gets what an hour allows.
        let mut count = 0;
        for _ in 0..3600 {
            tokio::time::advance(Duration::from_secs(1)).await;
            count += usize::from(writes.take("a", large).is_ok());
        }
        assert!((159..=160).contains(&count), "{count}");
        let refused = writes.take("a", large).unwrap_err();
        assert!(refused.contains("10 MiB an hour"), "{refused}");
    }
}
