//! `supervisor plugins log NAME`: the last lines of a plugin, which the running supervisor has in memory.

use std::io::{ErrorKind, Write as _, stdout};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::Value;

use crate::arguments::LogArguments;
use crate::running_supervisor::RunningSupervisor;
use crate::{configuration, output};

/// How often a follower asks for new lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// Prints the lines, and for a follower new ones, until the command is ended or its output is closed. If there are none
/// yet, it prints that to standard error.
///
/// # Errors
/// No supervisor is running, or it has no such plugin.
pub(crate) fn log(arguments: LogArguments) -> Result<()> {
    let LogArguments {
        name,
        follow,
        json,
        flags,
    } = arguments;
    // The valid characters of a plugin's name: the text becomes part of a path.
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    ensure!(
        !name.is_empty() && name.bytes().all(is_name),
        "`{name}` is not the name of a plugin: `supervisor plugins list` lists them"
    );
    let configuration = configuration::resolve(*flags)?;
    let mut after = 0;
    let mut is_first = true;
    loop {
        let Some(supervisor) = RunningSupervisor::find(&configuration.state_dir)? else {
            bail!(
                "no supervisor is running with the state folder `{}`, and the lines are in its memory: the host's \
                 journal has older ones",
                configuration.state_dir.display()
            );
        };
        let path = format!("/v3/plugins/{name}/log?after={after}");
        let answer = supervisor.get(&path)?;
        if answer.is_not_found() {
            return Err(unknown(&name, &supervisor.plugin_names()?));
        }
        let answer = answer.ok()?;
        let newest = answer["newest"].as_u64().unwrap_or_default();
        if newest < after {
            // Numbers restart with the supervisor: these lines belong to another one, from the
            // first on.
            after = 0;
            continue;
        }
        after = newest;
        let lines = answer["lines"].as_array().map_or(&[][..], Vec::as_slice);
        if std::mem::take(&mut is_first) && lines.is_empty() {
            output::note(none_yet(&name, newest));
        }
        for line in lines {
            let line = if json { line.to_string() } else { text(line) };
            match writeln!(stdout(), "{line}") {
                // Nobody reads on.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                result => result.context("failed to write to standard output")?,
            }
        }
        if !follow {
            return Ok(());
        }
        sleep(INTERVAL);
    }
}

/// Explains an empty log. `newest` is the number of the plugin's newest line.
fn none_yet(plugin: &str, newest: u64) -> String {
    if newest == 0 {
        return format!("the plugin `{plugin}` has written no lines since the supervisor started");
    }
    format!(
        "the lines of the plugin `{plugin}` are no longer in the supervisor's memory: the host's journal has them"
    )
}

/// Creates the error for a plugin that the supervisor does not have; `others` are the names of those that it has.
fn unknown(plugin: &str, others: &[String]) -> anyhow::Error {
    match others {
        [] => anyhow!("the device has no plugin `{plugin}`, and no others"),
        others => anyhow!(
            "the device has no plugin `{plugin}`; it has {}",
            others.join(", ")
        ),
    }
}

fn text(line: &Value) -> String {
    let word = |key: &str| line[key].as_str().unwrap_or_default();
    let level = word("level").to_ascii_uppercase();
    format!("{} {level:<5} {}", word("time"), word("message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_time_its_level_and_its_text() {
        let line = serde_json::json!({
            "number": 7, "time": "2023-11-14T22:13:20.123Z", "level": "warn", "message": "too hot",
        });
        assert_eq!(text(&line), "2023-11-14T22:13:20.123Z WARN  too hot");
    }

    #[test]
    fn an_empty_log_says_whether_there_were_lines() {
        assert!(none_yet("a", 0).contains("`a` has written no lines"));
        assert!(none_yet("a", 7).contains("the host's journal has them"));
    }

    #[test]
    fn an_unknown_plugin_is_an_error_that_lists_the_plugins() {
        let error = |others: &[String]| unknown("x", others).to_string();
        assert_eq!(
            error(&["`a`".to_owned(), "`b`".to_owned()]),
            "the device has no plugin `x`; it has `a`, `b`"
        );
        assert_eq!(error(&[]), "the device has no plugin `x`, and no others");
    }
}
