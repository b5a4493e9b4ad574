//! The limits for all plugins together, in one place. The limits of one call are in `limits.rs`; if a limit applies to
//! all plugins, each of them gets at most half, so that the other half is left for others.
//!
//! ```text
//! places      concurrent instances               DEFAULT_SLOTS of `host/plugin-protocol`; half for one plugin
//! memory      linear memory of all instances     memory_of_board, or `memory_mib` in `[bounds]` of the policy; half for one
//! waiting     for a place, a turn or memory      PATIENCE of `host/plugin-protocol`
//! starting    ahead of calls, for each plugin    START_WITHIN of `host/plugin-runtime`
//! files       read, in all plugin folders        MOST_FILES
//! log         lines, by plugin and over all      LINES_AT_ONCE, LINES_A_SECOND; half for one
//! failures    lines and events about calls that failed, by plugin and over all FAILURES_AT_ONCE, FAILURES_A_SECOND; half for one
//! host lines  about what plugins make the host do, by plugin and over all HOST_LINES_AT_ONCE, HOST_LINES_A_SECOND; half for one
//! restarts    lines about units that the host restarts for plugins RESTARTS_AT_ONCE, RESTARTS_A_SECOND; half for one
//! log kept    lines in memory, and their bytes   RECENT_LINES, RECENT_BYTES by plugin, RECENT_BYTES_OF_ALL
//! metrics     series and their texts, by plugin  SERIES, METRIC_NAME, LABELS, LABEL_NAME, LABEL_VALUE
//! fields      of the device's report to its cloud, by plugin and over all FIELDS, FIELDS_OF_ALL, and `FIELD_…` of `host/plugin-protocol`
//! requests    to other hosts, and to the device's own API: at a time and by length HTTP_REQUESTS, HTTP_ANSWER, and `HTTP_…` of `host/plugin-protocol`; half for one at a time
//! host calls  bytes of arguments and of answers, by plugin and over all HOST_CALL_BYTES, HOST_ANSWER_BYTES and `ALL_…` of `host/plugin-protocol`
//! compiling   children, their memory and time    `Limits` of `host/compiled-code`
//! jobs        that may wait for the disk, and as many for hardware BLOCKING_JOBS; half for one
//! store       writes and bytes by plugin         `host/supervisor/src/plugin_writes.rs`
//! journal     readers at a time                  `os::Journal`; half for one
//! ```

/// The least memory of all plugins together, in bytes: half of it is the most that a policy can give to one call.
pub(crate) const LEAST_MEMORY: usize = 2 * compiled_code::PLUGIN_MEMORY;
/// The fraction of a board's memory that plugins get.
const MEMORY_PART: u64 = 8;
/// How many files are read, in all plugin folders together.
pub(crate) const MOST_FILES: usize = 512;
/// Lines that all plugins may write to the log at once after writing none for a while: as many as eight calls may
/// write.
pub(crate) const LINES_AT_ONCE: u32 = 800;
/// The same over time, in lines per second.
pub(crate) const LINES_A_SECOND: u32 = 40;
/// The failures of all plugins' calls that are logged at once after none for a while, and shown as events, of which the
/// device keeps the last 1024.
pub(crate) const FAILURES_AT_ONCE: u32 = 200;
/// The same over time, in failures per second.
pub(crate) const FAILURES_A_SECOND: u32 = 10;
/// The lines that the host logs at once about what all plugins make it do, after none for a while.
pub(crate) const HOST_LINES_AT_ONCE: u32 = 200;
/// The same over time, in lines per second.
pub(crate) const HOST_LINES_A_SECOND: u32 = 10;
/// The lines that the host logs at once about units that it restarts for all plugins, after none for a while.
pub(crate) const RESTARTS_AT_ONCE: u32 = 200;
/// The same over time, in lines per second.
pub(crate) const RESTARTS_A_SECOND: u32 = 10;
/// The last lines of one plugin that are kept in memory.
pub(crate) const RECENT_LINES: usize = 100;
/// The memory that these lines take, in bytes.
pub(crate) const RECENT_BYTES: usize = 16 << 10;
/// The memory that the lines of all plugins take, in bytes.
pub(crate) const RECENT_BYTES_OF_ALL: usize = 256 << 10;
/// The series of metrics that one plugin reports (`wit/metrics.wit`).
pub(crate) const SERIES: usize = 100;
/// The longest name of a metric, in bytes.
pub(crate) const METRIC_NAME: usize = 64;
/// The most labels of a series.
pub(crate) const LABELS: usize = 4;
/// The longest name of a label, in bytes.
pub(crate) const LABEL_NAME: usize = 32;
/// The longest value of a label, in bytes.
pub(crate) const LABEL_VALUE: usize = 128;
/// The fields that one plugin adds to the device's report to its cloud (`wit/report.wit`).
pub(crate) const FIELDS: usize = 16;
/// The fields of all plugins together.
pub(crate) const FIELDS_OF_ALL: usize = 64;

/// How many jobs of all plugins together can wait for the disk at a time, and as many for hardware; half for one plugin. Each
/// takes a thread.
pub(crate) const BLOCKING_JOBS: usize = 4;

/// How many requests to other hosts all plugins together can have under way, and as
/// many to the device's own API; half for one plugin.
pub const HTTP_REQUESTS: usize = 16;
/// The longest body of an answer to such a request, in bytes.
pub(crate) const HTTP_ANSWER: usize = 1 << 20;

/// Returns how much memory plugins get on a board with this much memory, in bytes.
#[must_use]
pub fn memory_of_board(memory: u64) -> usize {
    let part = usize::try_from(memory / MEMORY_PART).unwrap_or(usize::MAX);
    part.max(LEAST_MEMORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_have_an_eighth_of_the_board_and_64_mib_at_least() {
        for (board, plugins) in [(0, 64), (480, 64), (1_024, 128), (4_096, 512)] {
            assert_eq!(memory_of_board(board << 20) >> 20, plugins, "{board}");
        }
    }
}
