//! `test`: sends requests from TOML files, the same in every language, and compares the answers.

mod action_call;
mod action_outcome;
mod actions;
mod body_lines;
mod bytes_difference;
mod caller;
mod device_event;
mod effects;
mod event;
mod expectation;
mod file;
mod gate_answer;
mod hardware;
mod line_difference;
mod metrics;
mod names;
mod plugin_call;
mod provider_call;
mod reason;
mod report;
mod request;
mod test_device;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

pub(super) use self::action_outcome::ActionOutcome;
use self::device_event::until_started;
pub(super) use self::device_event::{EventOutcome, EventToml};
use self::file::{Step, TestFile};
pub(super) use self::gate_answer::GateAnswer;
pub(super) use self::plugin_call::PluginCallToml;
use self::test_device::TestDevice;
use crate::arguments::Test;
use crate::commands::trial::Trial;
use crate::component::Component;
use crate::device_file::DEVICE;
use crate::output::Output;

pub(crate) async fn run(arguments: &Test, output: &Output) -> Result<ExitCode> {
    let project = &arguments.component.project.project;
    let files = match arguments.files.as_slice() {
        [] => files_of(&project.join("test"))?,
        files => files.to_vec(),
    };
    let mut tests = Vec::new();
    for file in &files {
        tests.push(TestFile::read(file)?);
    }
    let component = Component::load(&arguments.component, output)?;
    let started = Instant::now();
    let mut passed = 0_u32;
    let mut failed = Vec::new();
    for test in &tests {
        // Each file has its own device, so that files do not depend on each other.
        let named = test.device.as_ref().map(|file| test.folder().join(file));
        let trial = Trial::on(named.as_deref(), &project.join(DEVICE))
            .with_context(|| format!("the device of `{}`", test.path.display()))?;
        let mut hint = trial.missing_mapping(&component.manifest);
        if let Some(hint) = &hint {
            output.note(hint);
        }
        let host = trial
            .start(&component)
            .await
            .context("a device would not load the plugin")?;
        if let Some(error) = until_started(&host).await? {
            output.note(&format!(
                "{}: the plugin failed at the event of the device's start, before the first step: {error}",
                test.path.display()
            ));
        }
        let device = TestDevice {
            host: &host,
            manifest: &component.manifest,
            records: trial.records(),
        };
        for step in &test.steps {
            let differences = step.differences(&device).await;
            // Also the hints of a step that passes, so that the next one has only its own.
            let hints = device.records.hints.take();
            if differences.is_empty() {
                passed += 1;
            } else {
                let hints = hint.take().into_iter().chain(hints);
                failed.push(failure(test, step, with_hints(differences, hints)));
            }
        }
        host.stop().await;
    }
    let mut text = String::new();
    for (shown, _) in &failed {
        text.push_str(shown);
    }
    let seconds = started.elapsed().as_secs_f64();
    text.push_str(&format!(
        "{passed} passed, {} failed, in {seconds:.1} s",
        failed.len()
    ));
    let is_ok = failed.is_empty();
    let failed: Vec<Value> = failed.into_iter().map(|(_, document)| document).collect();
    output.result(&text, &json!({ "passed": passed, "failed": failed }));
    Ok(if is_ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the test files of a folder, sorted.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| {
        format!(
            "there is no folder `{}` with tests; `--file FILE` names one elsewhere",
            folder.display()
        )
    })?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort();
    ensure!(
        !files.is_empty(),
        "there are no tests (*.toml) in `{}`",
        folder.display()
    );
    Ok(files)
}

/// Adds those hints to the differences of a step that these do not contain, for example in an answer's JSON.
fn with_hints(mut differences: Vec<String>, hints: impl Iterator<Item = String>) -> Vec<String> {
    let text = differences.join("\n").replace("\\\"", "\"");
    differences.extend(hints.filter(|hint| !text.contains(hint)));
    differences
}

/// Describes a request or an event with an unexpected answer, for people and for programs.
fn failure(test: &TestFile, step: &Step, differences: Vec<String>) -> (String, Value) {
    let place = format!("{}:{}", test.path.display(), step.line());
    let mut text = format!("failed {place} {step}\n");
    for difference in &differences {
        for line in difference.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    let document =
        json!({ "place": place, "request": step.to_string(), "differences": differences });
    (text, document)
}
