//! `check`: finds what a device would refuse, before the device does.

mod file_digest;
mod native_code;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use plugin_manifest::{Manifest, ProjectErrors};
use plugins::{refused_imports, trust_lines};
use serde_json::json;

use crate::arguments::Check;
use crate::commands::trial::Trial;
use crate::component::Component;
use crate::component_imports::imports_with_functions;
use crate::output::{Output, size};
use file_digest::FileDigest;
use native_code::NativeCode;

/// The result of the check.
#[derive(Default)]
struct Findings {
    passed: Vec<String>,
    failed: Vec<String>,
    /// The digest of the file, if it is a plugin.
    file: Option<FileDigest>,
    /// The result of compiling it, if it loads.
    native_code: Option<NativeCode>,
    /// Lines that an owner would add to the policy of a device.
    policy_lines: Option<PolicyLines>,
}

/// Lines for a policy that make it grant everything.
struct PolicyLines {
    /// The file of the policy that lacks them, if the author has named one.
    policy: Option<PathBuf>,
    lines: String,
}

pub(crate) async fn run(arguments: &Check, output: &Output) -> Result<ExitCode> {
    let findings = match Component::load(&arguments.component, output) {
        Ok(component) => findings(arguments, &component).await?,
        Err(error) => match file_problems(arguments, &error) {
            Some(failed) => Findings {
                failed,
                ..Findings::default()
            },
            None => return Err(error),
        },
    };
    Ok(findings.show(output))
}

/// Returns what is wrong with the file of a plugin or with `plugin.toml`, which this command has to report; `None` if the
/// error is about something else, such as the build.
fn file_problems(arguments: &Check, error: &anyhow::Error) -> Option<Vec<String>> {
    if let Some(errors) = error.downcast_ref::<ProjectErrors>() {
        return Some(errors.iter().map(ToString::to_string).collect());
    }
    let is_of_file = arguments.component.file.is_some();
    is_of_file.then(|| vec![format!("{error:#}")])
}

async fn findings(arguments: &Check, component: &Component) -> Result<Findings> {
    let manifest = &component.manifest;
    let interface = &manifest.interface;
    let mut findings = Findings::default();
    findings.passed.push(format!(
        "component of {}, manifest, interface {interface} (devices from {interface} on)",
        size(component.wasm.len() as u64)
    ));
    let file = FileDigest::new(component);
    findings.passed.push(file.line());
    findings.file = Some(file);
    findings.failed.extend(manifest.reserved_routes());
    let trial = Trial::on_nothing()?
        .for_board(&board(arguments, manifest))
        .with_policy(arguments.policy.as_deref())?;
    let refusals = trial.refusals(component)?;
    findings.failed.extend(refusals.iter().cloned());
    if let Some(device_type) = &arguments.device_type
        && !manifest.is_for(device_type)
    {
        findings.failed.push(format!(
            "it is for the boards {}, and not for `{device_type}`",
            manifest.boards.join(", ")
        ));
    } else {
        findings.failed.extend(conflicts(&trial, manifest));
        let is_compiled = Trial::native_code(component)
            .await
            .is_ok_and(|file| file.is_some());
        let started = Instant::now();
        let host = if refusals.is_empty() {
            trial.start(component).await
        } else {
            // Whatever else is wrong with it is reported too, and not only once the policy grants everything.
            trial.start_with_all_grants(component).await
        };
        match host {
            Ok(host) => {
                let compiled_in = (!is_compiled).then(|| started.elapsed());
                let what = "it compiles, and this version of the host has what it imports and calls what it exports";
                findings.passed.push(what.to_owned());
                if arguments.policy.is_some() && refusals.is_empty() {
                    let what = "the policy allows what it asks for";
                    findings.passed.push(what.to_owned());
                }
                host.stop().await;
                if let Some(file) = Trial::native_code(component).await? {
                    let code = NativeCode::read(&file, &component.wasm)?;
                    findings.passed.extend(code.lines(compiled_in));
                    findings.passed.extend(code.fewer_calls(&manifest.limits));
                    findings.native_code = Some(code);
                }
            }
            Err(error) => {
                let problems = format!("{error:#}");
                findings.failed.extend(problems.lines().map(str::to_owned));
                // A device reads the imports of what the compiler has accepted.
                if Trial::native_code(component).await?.is_none() {
                    let imports = imports_with_functions(&component.wasm);
                    let imports = imports.iter().map(String::as_str);
                    findings.failed.extend(refused_imports(manifest, imports));
                }
            }
        }
    }
    let is_needed = match &arguments.policy {
        None => findings.failed.is_empty(),
        // No policy grants the routes of stock plugins.
        Some(_) => !refusals.is_empty() && manifest.stock_routes().next().is_none(),
    };
    if is_needed {
        let no_file = Path::new("");
        let policy = arguments.policy.as_deref().unwrap_or(no_file);
        findings.policy_lines = Some(PolicyLines {
            policy: arguments.policy.clone(),
            lines: trust_lines(&component.file, policy, no_file, None)?,
        });
    }
    Ok(findings)
}

/// Returns the conflicts with stock plugins: a device loads one provider of an action for all boards.
fn conflicts(trial: &Trial, manifest: &Manifest) -> Vec<String> {
    if trial.names_board_for(manifest) {
        return Vec::new();
    }
    let actions = manifest.actions_of_stock_plugins();
    let conflicts = actions.map(|(action, stock)| {
        format!(
            "`{action}` is also provided by the stock plugin `{stock}`, and a device loads only one of them; name the boards \
             that this one is for, in `boards` of its manifest and of its section `[plugins.{}]` in the policy",
            manifest.name
        )
    });
    conflicts.collect()
}

/// Returns the named board, or else one that the plugin is for.
fn board(arguments: &Check, manifest: &Manifest) -> String {
    let of_pattern = || manifest.boards.first().map(|board| board.replace('*', "0"));
    let named = arguments.device_type.clone();
    named
        .or_else(of_pattern)
        .unwrap_or_else(|| "unknown".to_owned())
}

impl Findings {
    fn show(&self, output: &Output) -> ExitCode {
        let file = self.file.as_ref();
        let signature = file.and_then(|file| file.signature);
        let mut text = String::new();
        for passed in &self.passed {
            text.push_str(&format!("ok     {passed}\n"));
        }
        for failed in &self.failed {
            text.push_str(&format!("fails  {failed}\n"));
        }
        if let Some(PolicyLines { policy, lines }) = &self.policy_lines {
            let heading = if let Some(policy) = policy {
                let policy = policy.display();
                format!("The policy `{policy}` grants everything that is missing with these lines:")
            } else {
                let what = signature.map_or("the unsigned file", |_| "it");
                format!("A device loads {what} when its policy has these lines:")
            };
            text.push_str(&format!("\n{heading}\n\n{lines}"));
        }
        output.result(
            &text,
            &json!({
                "ok": self.failed.is_empty(), "passed": self.passed, "failed": self.failed,
                "policy": self.policy_lines.as_ref().map(|policy| &policy.lines),
                "sha256": file.map(|file| &file.sha256), "signature": signature.map(|place| place.to_string()),
                "native_code": self.native_code.as_ref().map(NativeCode::json),
            }),
        );
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
