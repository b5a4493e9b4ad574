//! `supervisor plugins log NAME`: the last lines of a plugin, which the running supervisor has in memory.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use serde_json::Value;

use crate::arguments::LogArguments;
use crate::output::Readership;
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
    let mut last: Option<Value> = None;
    let mut is_first = true;
    loop {
        let Some(supervisor) = RunningSupervisor::find(&configuration.state_dir)? else {
            bail!(
                "no supervisor is running with the state folder `{}`, and the lines are in its memory: the host's \
                 journal has older ones",
                configuration.state_dir.display()
            );
        };
        // The last line is requested again, to see whether the answer still comes from the same run.
        let after = last.as_ref().map_or(0, number).saturating_sub(1);
        let path = format!("/v3/plugins/{name}/log?after={after}");
        let answer = supervisor.get(&path)?;
        if answer.is_not_found() {
            return Err(unknown(&name, &supervisor.plugin_names()?));
        }
        let answer = answer.ok()?;
        let Some(lines) = lines_after(last.as_ref(), &answer) else {
            last = None;
            continue;
        };
        if std::mem::take(&mut is_first) && lines.is_empty() {
            output::note(none_yet(&name, newest(&answer)));
        }
        for line in lines {
            let line = if json { line.to_string() } else { text(line) };
            if output::print_while_read(format_args!("{line}\n"))? == Readership::Gone {
                return Ok(());
            }
        }
        if !follow {
            return Ok(());
        }
        if let Some(line) = lines.last() {
            last = Some(line.clone());
        }
        sleep(INTERVAL);
    }
}

/// Returns the lines of an answer that come after `last`, the last line that was printed. `None` if the answer comes from
/// another run of the supervisor than `last`: numbers begin again with each run, so all lines of the new one are new.
fn lines_after<'a>(last: Option<&Value>, answer: &'a Value) -> Option<&'a [Value]> {
    let lines = answer["lines"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(last) = last else {
        return Some(lines);
    };
    if newest(answer) < number(last) {
        return None;
    }
    match lines.split_first() {
        Some((first, rest)) if first == last => Some(rest),
        Some((first, _)) if number(first) == number(last) => None,
        // There were so many lines since then that the last one is no longer in memory.
        _ => Some(lines),
    }
}

/// Returns the number of the plugin's newest line; 0 if it has written none.
fn newest(answer: &Value) -> u64 {
    answer["newest"].as_u64().unwrap_or_default()
}

fn number(line: &Value) -> u64 {
    line["number"].as_u64().unwrap_or_default()
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
    use std::slice::from_ref;

    use super::*;

    #[test]
    fn a_line_has_its_time_its_level_and_its_text() {
        let line = serde_json::json!({
            "number": 7, "time": "2023-11-14T22:13:20.123Z", "level": "warn", "message": "too hot",
        });
        assert_eq!(text(&line), "2023-11-14T22:13:20.123Z WARN  too hot");
    }

    fn line(number: u64, message: &str) -> Value {
        serde_json::json!({
            "number": number, "time": "2023-11-14T22:13:20.123Z", "level": "info", "message": message,
        })
    }

    fn answer(newest: u64, lines: &[Value]) -> Value {
        serde_json::json!({ "newest": newest, "lines": lines })
    }

    #[test]
    fn a_follower_continues_after_the_last_line_that_it_has_printed() {
        let [one, two, three] = [line(1, "one"), line(2, "two"), line(3, "three")];
        let first = answer(2, &[one.clone(), two.clone()]);
        assert_eq!(lines_after(None, &first), Some(&[one, two.clone()][..]));
        let next = answer(3, &[two.clone(), three.clone()]);
        assert_eq!(lines_after(Some(&two), &next), Some(from_ref(&three)));
        let nothing = answer(3, from_ref(&three));
        assert_eq!(lines_after(Some(&three), &nothing), Some(&[][..]));
        // The lines in between are no longer in memory.
        let later = answer(9, &[line(9, "nine")]);
        assert_eq!(
            lines_after(Some(&three), &later),
            Some(&[line(9, "nine")][..])
        );
    }

    /// Also if the plugin has already written more lines than before the restart.
    #[test]
    fn a_follower_begins_again_with_the_first_line_of_a_restarted_supervisor() {
        let last = line(2, "two");
        let fewer = answer(1, &[]);
        assert_eq!(lines_after(Some(&last), &fewer), None);
        let more = answer(5, &[line(2, "of the new run"), line(3, "three")]);
        assert_eq!(lines_after(Some(&last), &more), None);
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
