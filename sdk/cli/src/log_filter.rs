//! The lines of a device's log that authors see.

use plugins::FAILURES_FOR_AUTHORS;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// Returns the filter that leaves out what a supervisor logs about its policy and its plugin files. Here these are copies
/// that the tool has made, and the tool itself says in the author's words what is wrong with them.
pub(crate) fn for_authors() -> Targets {
    Targets::new()
        .with_default(LevelFilter::INFO)
        // That the supervisor is in developer mode.
        .with_target("plugins::plugins", LevelFilter::OFF)
        // That a policy is invalid.
        .with_target("plugins::loader::policy_state", LevelFilter::OFF)
        // Which files are loaded, and which are not.
        .with_target("plugins::assembly", LevelFilter::OFF)
        // That no plugin provides `identify`: the device file answers in its place, or the tool says what to write.
        .with_target("plugins::identify", LevelFilter::OFF)
        // Which files were compiled.
        .with_target("compiled_code", LevelFilter::WARN)
}

/// Returns the filter of the lines that `run` shows: failures are shown in the words for authors.
pub(crate) fn for_terminal() -> Targets {
    for_authors()
        .with_target("plugins::failure", LevelFilter::OFF)
        .with_target(FAILURES_FOR_AUTHORS, LevelFilter::DEBUG)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn lines_about_copies_are_left_out_and_those_of_plugins_are_not() {
        let filter = for_authors();
        for (target, level, expected) in [
            ("plugins::plugins::start", Level::WARN, false),
            ("plugins::loader::policy_state", Level::ERROR, false),
            ("plugins::assembly", Level::ERROR, false),
            ("plugins::identify", Level::INFO, false),
            ("compiled_code::cache", Level::INFO, false),
            ("compiled_code::cache", Level::ERROR, true),
            ("plugins::plugin_host", Level::INFO, true),
            ("plugins::plugin_host", Level::DEBUG, false),
            ("plugins::call", Level::ERROR, true),
        ] {
            let shown = filter.would_enable(target, &level);
            assert_eq!(shown, expected, "{target} {level}");
        }
        let filter = for_terminal();
        for (target, level, expected) in [
            ("plugins::failure", Level::WARN, false),
            (FAILURES_FOR_AUTHORS, Level::DEBUG, true),
            ("plugins::plugin_host", Level::INFO, true),
        ] {
            let shown = filter.would_enable(target, &level);
            assert_eq!(shown, expected, "{target} {level}");
        }
    }
}
