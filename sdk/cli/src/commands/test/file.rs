//! The file of a test.
//!
//! ```toml
//! device = "devices/broken-led.toml"  # from the folder of this file; without it, the project's
//!
//! [[request]]
//! post = "/v3/rails/5v"               # or get, put, patch, delete
//! headers = { accept = "text/plain" }
//! json = { on = true }                # or json_text = '{"on":null}', or body = "text"
//! caller = "device"                   # the default; or "local-mode", or { app = 1, service = "main" }
//! answer = { status = 200, json = { rail = "5v", on = true } }
//!
//! [[event]]                           # what happens in between (`device_event.rs`)
//! schedule = "nightly"
//!
//! [[action]]                          # a call of an action that it provides (`plugin_call.rs`, `provider_call.rs`)
//! name = "set"
//! answer = { json = true }
//!
//! [[report]]                          # what the plugin adds to the device's report by then (`report.rs`)
//! fields = { level = { value = 40, unit = "%" } }
//!
//! [[metrics]]                         # the gauges and counters that it has reported by then (`metrics.rs`)
//! counters = { readings_total = 1 }
//!
//! [[actions]]                         # the actions of other plugins that it has called by then (`actions.rs`)
//! calls = [{ action = "acme-rails/set", json = { name = "5v", on = true } }]
//!
//! [[log]]                             # the lines that it has logged by then; and [[cloud]], [[units]] and [[leds]], what it
//! contains = ["the door is open"]     # has queued for the cloud, restarted and lit by then (`effects.rs`)
//!
//! [[gpio]]                            # what is connected to its lines; and [[i2c]] (`hardware.rs`)
//! drive = { door = true }
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use plugin_manifest::FormError;
use serde::Deserialize;
use toml::Spanned;

use super::action_call::TestActionCall;
use super::actions::{ActionsToml, TestActions};
use super::device_event::EventToml;
use super::effects::{CloudToml, LedsToml, LogToml, TestEffects, UnitsToml};
use super::event::TestEvent;
use super::hardware::{ChipsToml, LinesToml, TestChips, TestLines};
use super::metrics::{MetricsToml, TestMetrics};
use super::plugin_call::PluginCallToml;
use super::report::{ReportToml, TestReport};
use super::request::{RequestToml, TestRequest};
use super::test_device::TestDevice;

/// A file of requests, events, calls of actions, comparisons of what the plugin reports, calls and does, and changes of
/// the hardware, which run in their order.
pub(crate) struct TestFile {
    pub(crate) path: PathBuf,
    /// The device on which the plugin runs: a path from the file's folder.
    pub(crate) device: Option<PathBuf>,
    pub(crate) steps: Vec<Step>,
}

/// A request, an event on the device, a call of an action, a comparison of what the plugin reports, calls or does, or the
/// hardware that it uses.
#[derive(derive_more::Display)]
pub(crate) enum Step {
    Request(Box<TestRequest>),
    Event(TestEvent),
    ActionCall(Box<TestActionCall>),
    Report(TestReport),
    Metrics(TestMetrics),
    Actions(TestActions),
    Effects(TestEffects),
    Lines(TestLines),
    Chips(TestChips),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileToml {
    device: Option<PathBuf>,
    #[serde(default)]
    request: Vec<Spanned<RequestToml>>,
    #[serde(default)]
    event: Vec<Spanned<EventToml>>,
    #[serde(default)]
    action: Vec<Spanned<PluginCallToml>>,
    #[serde(default)]
    report: Vec<Spanned<ReportToml>>,
    #[serde(default)]
    metrics: Vec<Spanned<MetricsToml>>,
    #[serde(default)]
    actions: Vec<Spanned<ActionsToml>>,
    #[serde(default)]
    log: Vec<Spanned<LogToml>>,
    #[serde(default)]
    cloud: Vec<Spanned<CloudToml>>,
    #[serde(default)]
    units: Vec<Spanned<UnitsToml>>,
    #[serde(default)]
    leds: Vec<Spanned<LedsToml>>,
    #[serde(default)]
    gpio: Vec<Spanned<LinesToml>>,
    #[serde(default)]
    i2c: Vec<Spanned<ChipsToml>>,
}

impl TestFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or a request in it is incomplete.
    pub(crate) fn read(path: &Path) -> Result<TestFile> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        TestFile::parse(path, &text).with_context(|| format!("`{}` is invalid", path.display()))
    }

    fn parse(path: &Path, text: &str) -> Result<TestFile> {
        let file: FileToml = toml::from_str(text)
            .map_err(|error| anyhow!(FormError::new(&error).with_place(text)))?;
        let mut reader = StepReader {
            text,
            steps: Vec::new(),
        };
        reader.read("request", file.request, |written, line| {
            Ok(Step::Request(Box::new(TestRequest::new(written, line)?)))
        })?;
        reader.read("event", file.event, |written, line| {
            Ok(Step::Event(TestEvent::new(written, line)?))
        })?;
        reader.read("[[action]]", file.action, |written, line| {
            let call = TestActionCall::new(written, line)?;
            Ok(Step::ActionCall(Box::new(call)))
        })?;
        reader.read("[[report]]", file.report, |written, line| {
            Ok(Step::Report(TestReport::new(written, line)))
        })?;
        reader.read("[[metrics]]", file.metrics, |written, line| {
            Ok(Step::Metrics(TestMetrics::new(written, line)?))
        })?;
        reader.read("[[actions]]", file.actions, |written, line| {
            Ok(Step::Actions(TestActions::new(written, line)))
        })?;
        reader.read("[[log]]", file.log, |written, line| {
            Ok(Step::Effects(TestEffects::of_log(written, line)?))
        })?;
        reader.read("[[cloud]]", file.cloud, |written, line| {
            Ok(Step::Effects(TestEffects::of_cloud(written, line)))
        })?;
        reader.read("[[units]]", file.units, |written, line| {
            Ok(Step::Effects(TestEffects::of_units(written, line)))
        })?;
        reader.read("[[leds]]", file.leds, |written, line| {
            Ok(Step::Effects(TestEffects::of_leds(written, line)))
        })?;
        reader.read("[[gpio]]", file.gpio, |written, line| {
            Ok(Step::Lines(TestLines::new(written, line)?))
        })?;
        reader.read("[[i2c]]", file.i2c, |written, line| {
            Ok(Step::Chips(TestChips::new(written, line)?))
        })?;
        let mut steps = reader.steps;
        ensure!(
            !steps.is_empty(),
            "it has no [[request]], [[event]], [[action]], [[report]], [[metrics]], [[actions]], [[log]], [[cloud]], [[units]], [[leds]], [[gpio]] \
             or [[i2c]]"
        );
        steps.sort_by_key(Step::line);
        Ok(TestFile {
            path: path.to_owned(),
            device: file.device,
            steps,
        })
    }

    /// Returns the folder that contains the file.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

/// The steps of a file, of one kind of table after the other.
struct StepReader<'a> {
    /// The file's text.
    text: &'a str,
    steps: Vec<Step>,
}

impl StepReader<'_> {
    /// Adds the steps of the tables of one kind. `step` makes one from a table and its line, counted from 1.
    ///
    /// # Errors
    /// Those of `step`, with `kind` and the line.
    fn read<T>(
        &mut self,
        kind: &str,
        tables: Vec<Spanned<T>>,
        step: impl Fn(T, usize) -> Result<Step>,
    ) -> Result<()> {
        for table in tables {
            let before = self.text.get(..table.span().start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let step = step(table.into_inner(), line)
                .with_context(|| format!("the {kind} in line {line}"))?;
            self.steps.push(step);
        }
        Ok(())
    }
}

impl Step {
    /// Returns the line at which it begins in its file, counted from 1.
    pub(crate) fn line(&self) -> usize {
        match self {
            Step::Request(request) => request.line,
            Step::Event(event) => event.line,
            Step::ActionCall(call) => call.line,
            Step::Report(report) => report.line,
            Step::Metrics(metrics) => metrics.line,
            Step::Actions(actions) => actions.line,
            Step::Effects(effects) => effects.line,
            Step::Lines(lines) => lines.line,
            Step::Chips(chips) => chips.line,
        }
    }

    /// Runs the step, and compares the result.
    pub(crate) async fn differences(&self, device: &TestDevice<'_>) -> Vec<String> {
        let host = device.host;
        match self {
            Step::Request(request) => request.differences(host).await,
            Step::Event(event) => event.differences(host, device.manifest).await,
            Step::ActionCall(call) => call.differences(device).await,
            Step::Report(report) => report.differences(host),
            Step::Metrics(metrics) => metrics.differences(host),
            Step::Actions(actions) => actions.differences(&device.records.other_plugins),
            Step::Effects(effects) => effects.differences(&device.records.effects),
            Step::Lines(lines) => lines.differences(host),
            Step::Chips(chips) => chips.differences(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TestFile> {
        TestFile::parse(Path::new("a.toml"), text)
    }

    #[test]
    fn requests_and_events_are_in_their_order_and_know_their_lines() {
        let file = parse(
            "# a comment\n\n[[request]]\nget = \"/v3/a\"\nanswer = { status = 200 }\n[[event]]\nconnection = true\n[[request]]\npost = \"/v3/a\"\njson = [1]\ncaller = { app = 1, service = \"main\" }\nanswer = { status = 404 }\n",
        )
        .unwrap();
        let steps: Vec<_> = file
            .steps
            .iter()
            .map(|step| (step.line(), step.to_string()))
            .collect();
        let expected = [(3, "GET /v3/a"), (6, "event connection"), (8, "POST /v3/a")];
        assert_eq!(steps, expected.map(|(line, text)| (line, text.to_owned())));
        let Step::Request(request) = &file.steps[2] else {
            panic!("it is a request");
        };
        assert_eq!(request.headers["content-type"], "application/json");
    }

    #[test]
    fn a_request_can_have_null_in_its_json() {
        let text = "[[request]]\npost = \"/a\"\njson_text = '{\"a\": null}'\nanswer = {}";
        let file = parse(text).unwrap();
        let Step::Request(request) = &file.steps[0] else {
            panic!("it is a request");
        };
        assert_eq!(request.body, b"{\"a\":null}");
        assert_eq!(request.headers["content-type"], "application/json");
    }

    #[test]
    fn the_documented_files_are_tests() {
        let page = include_str!("../../../../../docs/plugin-tool.md");
        let (_, section) = page.split_once("\n## Tests\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let blocks = section.split("```toml\n").skip(1);
        let mut count = 0;
        for block in blocks {
            let (text, _) = block.split_once("```").unwrap();
            let file = parse(text);
            assert!(file.is_ok(), "{text}\n{:?}", file.err());
            count += 1;
        }
        assert_eq!(count, 7);
    }

    #[test]
    fn a_file_that_tests_nothing_is_refused() {
        for (text, expected) in [
            (
                "",
                "it has no [[request]], [[event]], [[action]], [[report]], [[metrics]], [[actions]], [[log]], [[cloud]], [[units]], [[leds]], [[gpio]] \
             or [[i2c]]",
            ),
            ("[[request]]\nanswer = {}", "it must have one of `get`"),
            (
                "[[request]]\nget = \"/a\"\npost = \"/a\"\nanswer = {}",
                "it must have one of `get`",
            ),
            (
                "[[request]]\npost = \"/a\"\nbody = \"\"\njson = 1\nanswer = {}",
                "it has a `body` and JSON",
            ),
            (
                "[[request]]\npost = \"/a\"\njson_text = '1'\njson = 1\nanswer = {}",
                "it has `json` and `json_text`",
            ),
            ("[[request]]\nget = \"/a\"", "`answer` is missing"),
            (
                "\n[[metrics]]\ngauges = {}",
                "the [[metrics]] in line 2: it must have a series",
            ),
            (
                "\n[[log]]\ncontains = []",
                "the [[log]] in line 2: it must have `lines` or `contains`",
            ),
            (
                "\n[[action]]\nanswer = {}",
                "the [[action]] in line 2: it must have one of `name`",
            ),
            ("[[metrics]]\nfields = {}", "there is no key `fields` here"),
            (
                "[[request]]\nget = \"/a\"\nanswer = { code = 200 }",
                "line 3, column 12: there is no key `code` here; the keys are ",
            ),
        ] {
            let error = format!("{:#}", parse(text).err().unwrap());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
