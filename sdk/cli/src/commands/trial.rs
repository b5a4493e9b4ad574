//! A device for trying out a plugin: the real runtime with fake hardware and services.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use compiled_code::{Cache, CodeDigest, Limits, Profile};
use plugin_manifest::{Manifest, glob, is_stock_plugin};
use plugin_test_host::{ActionObserver, EmbeddedHost, RunningHost};
use plugins::{SourceFile, policy_refusals};
use tempfile::TempDir;

use crate::compiler;
use crate::component::Component;
use crate::device_file::{CallRecords, DEVICE, DeviceFile, GrantSource, IdentifyProvider};

/// The policy by which a plugin is tried.
#[derive(Clone, Copy)]
enum TrialPolicy<'a> {
    /// One that an owner has written: its file, and its text.
    Owner(&'a Path, &'a str),
    /// That of a plugin which the layout ships with.
    StockPlugin,
    /// The one that the file of the device stands for.
    DeviceFile,
}

/// The device that a plugin is tried on.
pub(crate) struct Trial {
    device: DeviceFile,
    /// The file of the device, for people.
    file: String,
    /// The records of the plugin's calls.
    records: CallRecords,
    /// The policy of the plugin, and its file; without it, everything that the plugin asks for is
    /// granted.
    policy: Option<(PathBuf, String)>,
    /// The folder in which plugins' data is stored.
    state: Option<PathBuf>,
    /// Sees the calls of the plugin for events and actions.
    action_observer: Option<Arc<dyn ActionObserver>>,
    /// The folder of the program that replaces the journal command.
    scratch: TempDir,
}

impl Trial {
    /// Creates the device that the file `named` describes. If the author names none, that is the file `default`; if
    /// that is missing, the device has nothing.
    ///
    /// # Errors
    /// The file is invalid, or the author names one that is missing.
    pub(crate) fn on(named: Option<&Path>, default: &Path) -> Result<Trial> {
        let device = match named {
            Some(file) => DeviceFile::read(file)?,
            None => DeviceFile::read_if_present(default)?.unwrap_or_default(),
        };
        let file = named.unwrap_or(default);
        let file = file.strip_prefix(".").unwrap_or(file);
        Trial::new(device, file.display().to_string())
    }

    /// Creates a device whose file has this name for people.
    fn new(device: DeviceFile, file: String) -> Result<Trial> {
        Ok(Trial {
            records: device.call_records(&file),
            device,
            file,
            policy: None,
            state: None,
            action_observer: None,
            scratch: tempfile::tempdir().context("failed to create a temporary folder")?,
        })
    }

    /// Creates a device that has nothing.
    ///
    /// # Errors
    /// The folder of its files cannot be created.
    pub(crate) fn on_nothing() -> Result<Trial> {
        // What a remedy names, where an author would describe a device.
        Trial::new(DeviceFile::default(), DEVICE.to_owned())
    }

    /// Sets the type of the device.
    pub(crate) fn for_board(mut self, device_type: &str) -> Trial {
        self.device.set_type(device_type);
        self
    }

    /// Grants what this policy grants, to the files that it pins.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn with_policy(mut self, policy: Option<&Path>) -> Result<Trial> {
        if let Some(file) = policy {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read `{}`", file.display()))?;
            self.policy = Some((file.to_owned(), text));
        }
        Ok(self)
    }

    /// Stores the plugin's data in this folder.
    pub(crate) fn with_state(mut self, folder: Option<&Path>) -> Trial {
        self.state = folder.map(Path::to_owned);
        self
    }

    /// Has this observer see the calls of the plugin for events and actions.
    pub(crate) fn with_action_observer(mut self, observer: Arc<dyn ActionObserver>) -> Trial {
        self.action_observer = Some(observer);
        self
    }

    /// Returns the records of the plugin's calls.
    pub(crate) fn records(&self) -> &CallRecords {
        &self.records
    }

    /// Returns what identifies the device; `None` if the plugin with this manifest does it itself.
    pub(crate) fn identify_provider(&self, manifest: &Manifest) -> Option<IdentifyProvider> {
        let (file, records) = (&self.file, &self.records);
        self.device.identify_provider(file, records, manifest)
    }

    /// Says why the plugin finds no files on the device, and what to write; `None` if it asks for none or finds some. If
    /// the author names a policy, that decides.
    pub(crate) fn missing_mapping(&self, manifest: &Manifest) -> Option<String> {
        if self.policy.is_some() {
            return None;
        }
        self.device.missing_mapping(manifest, &self.file)
    }

    /// Returns everything because of which the device's policy refuses the plugin. A stock plugin without a policy is
    /// refused nothing, and what an invalid policy refuses is not known: [`Trial::start`] says what is wrong with it.
    ///
    /// # Errors
    /// The component's file cannot be read.
    pub(crate) fn refusals(&self, component: &Component) -> Result<Vec<String>> {
        let source = SourceFile::read(&component.file)?;
        let refusals = match self.policy_for(&source.manifest) {
            TrialPolicy::Owner(file, policy) => policy_refusals(&source, file, policy),
            TrialPolicy::StockPlugin => return Ok(Vec::new()),
            TrialPolicy::DeviceFile => {
                let policy = self.device.policy(&source.manifest, Some(&source.digest));
                policy_refusals(&source, Path::new(&self.file), &policy)
            }
        };
        Ok(refusals.unwrap_or_default())
    }

    /// Like [`Trial::start`], on a device that grants the plugin everything that it asks for, also what only stock plugins
    /// get.
    pub(crate) async fn start_with_all_grants(&self, component: &Component) -> Result<RunningHost> {
        self.start_by(component, TrialPolicy::StockPlugin).await
    }

    /// Starts the device with the plugin on it.
    ///
    /// # Errors
    /// What a device's log would say about a plugin that does not load, or that the plugin is for other boards, which a
    /// device ignores.
    pub(crate) async fn start(&self, component: &Component) -> Result<RunningHost> {
        self.start_by(component, self.policy_for(&component.manifest))
            .await
    }

    fn policy_for(&self, manifest: &Manifest) -> TrialPolicy<'_> {
        match &self.policy {
            Some((file, policy)) => TrialPolicy::Owner(file, policy),
            None if is_stock_plugin(&manifest.name) => TrialPolicy::StockPlugin,
            None => TrialPolicy::DeviceFile,
        }
    }

    async fn start_by(
        &self,
        component: &Component,
        policy: TrialPolicy<'_>,
    ) -> Result<RunningHost> {
        let manifest = &component.manifest;
        if let Some(reason) = self.device.other_board(manifest, &self.file) {
            bail!(reason);
        }
        let cache = compiler::compiled_code_folder()?;
        let source = match policy {
            TrialPolicy::Owner(..) => GrantSource::Policy,
            TrialPolicy::StockPlugin | TrialPolicy::DeviceFile => GrantSource::DeviceFile,
        };
        let records = self.records.clone();
        let answers = self.device.answers(&self.file, records, manifest, source);
        let device = self.device.host(&manifest.name, self.scratch.path())?;
        let device = device.plugin(&component.file);
        let device = match policy {
            TrialPolicy::Owner(_, policy) => device.policy(policy).pinned_by_policy(),
            TrialPolicy::StockPlugin => device
                .policy(self.device.policy(manifest, None))
                .developer_mode(),
            TrialPolicy::DeviceFile => {
                let digest = compiled_code::digest(&component.wasm);
                let policy = self.device.policy(manifest, Some(&digest));
                device.policy(policy).pinned_by_policy().developer_mode()
            }
        };
        let mut host = EmbeddedHost::new(device)
            .call_filter(answers)
            .compiler(compiler::program()?)
            .code_cache(cache);
        if component.is_of_project {
            host = host.reuse_functions();
        }
        if let Some(observer) = &self.action_observer {
            host = host.action_observer(Arc::clone(observer));
        }
        let folder = match &self.state {
            Some(state) => state.clone(),
            None => self.scratch.path().join("device"),
        };
        let host = host.folder(&folder);
        host.try_start().await.map_err(|error| {
            anyhow::anyhow!(self.in_authors_paths(&folder, &format!("{error:#}"), component))
        })
    }

    /// Returns whether the plugin takes precedence on this device over a provider for all boards: the policy names the
    /// board for it, or would with the lines that `check` prints.
    pub(crate) fn names_board_for(&self, manifest: &Manifest) -> bool {
        let boards = match &self.policy {
            Some((_, policy)) => boards_in(policy, &manifest.name),
            None => manifest.boards.clone(),
        };
        let board = self.device.device_type();
        let mut boards = boards
            .iter()
            .filter(|pattern| !pattern.bytes().all(|byte| byte == b'*'));
        boards.any(|pattern| glob(pattern, board))
    }

    /// Returns the compiled code of a component that was compiled before.
    ///
    /// # Errors
    /// The folder of compiled code cannot be used.
    pub(crate) async fn native_code(component: &Component) -> Result<Option<PathBuf>> {
        let cache = Cache::new(
            compiler::compiled_code_folder()?,
            compiler::program()?,
            Limits::default(),
        )?;
        let digest = CodeDigest::new(&component.wasm);
        Ok(cache.find_file(&digest, Profile::Plugin).await)
    }

    /// Replaces the paths of this device's copies in a text by those of the author's files.
    fn in_authors_paths(&self, folder: &Path, text: &str, component: &Component) -> String {
        let shown = |path: PathBuf| path.display().to_string();
        let copy = component
            .file
            .file_name()
            .map(|name| shown(folder.join("plugins").join(name)));
        let mut text = text.to_owned();
        if let Some(copy) = copy {
            text = text.replace(&copy, &shown(component.file.clone()));
        }
        let copy = shown(folder.join("policy.toml"));
        match &self.policy {
            Some((policy, _)) => text.replace(&copy, &shown(policy.clone())),
            None => in_words_of_device_file(&text, &copy, &self.file),
        }
    }
}

/// Says what is wrong with a device file, if a text says that the policy is invalid which the tool has made from it: the
/// author has not written a policy. The lines of that policy are not those of the file, so only the reason is kept.
fn in_words_of_device_file(text: &str, policy: &str, file: &str) -> String {
    let Some((_, reason)) = text.split_once(&format!("the policy `{policy}` is invalid: ")) else {
        let made = format!("the policy that `{file}` stands for");
        return text.replace(&format!("the policy `{policy}`"), &made);
    };
    let reason = reason.split("; no policy is in force").next();
    let reason = without_place(reason.unwrap_or_default());
    let remedy = if reason.contains("without granting") {
        ": ask for that in [capabilities] of plugin.toml, or remove it from [policy]"
    } else {
        ""
    };
    format!("`{file}` does not describe a device: {reason}{remedy}")
}

/// Removes `line 4, column 1: ` from the beginning of a reason.
fn without_place(reason: &str) -> &str {
    let after_place = reason
        .strip_prefix("line ")
        .and_then(|reason| reason.split_once(": "));
    after_place.map_or(reason, |(_, reason)| reason)
}

/// Returns the boards that a policy names for a plugin. An invalid policy names none; the trial says what is wrong with it.
fn boards_in(policy: &str, plugin: &str) -> Vec<String> {
    let policy: toml::Table = policy.parse().unwrap_or_default();
    let section = policy
        .get("plugins")
        .and_then(|plugins| plugins.get(plugin));
    let boards = section.and_then(|section| section.get("boards"));
    let boards = boards.and_then(toml::Value::as_array).into_iter().flatten();
    boards
        .filter_map(|board| board.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_a_device_file_is_not_one_in_a_policy() {
        let policy = "/tmp/x/policy.toml";
        for (text, expected) in [
            (
                "the policy `/tmp/x/policy.toml` is invalid: line 4, column 1: there is no key `lamps` here; \
                 the keys are `leds`; no policy is in force\nplugin `a` does not load: no policy is in force: it is invalid, see above",
                "`device.toml` does not describe a device: there is no key `lamps` here; the keys are `leds`",
            ),
            (
                "the policy `/tmp/x/policy.toml` is invalid: `[plugins.a]`: it names `leds` without granting \"led\"; no \
                 policy is in force",
                "`device.toml` does not describe a device: `[plugins.a]`: it names `leds` without granting \"led\": ask for \
                 that in [capabilities] of plugin.toml, or remove it from [policy]",
            ),
            (
                "which the policy `/tmp/x/policy.toml` does not grant",
                "which the policy that `device.toml` stands for does not grant",
            ),
            ("it does not compile", "it does not compile"),
        ] {
            let shown = in_words_of_device_file(text, policy, "device.toml");
            assert_eq!(shown, expected);
        }
    }
}
