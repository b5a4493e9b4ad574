//! A device on which a plugin is tried: the real runtime around fakes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use plugin_test_host::RunningHost;
use tempfile::TempDir;

use crate::compiler;
use crate::component::Component;
use crate::device_file::DeviceFile;

/// What a plugin is tried on.
pub(crate) struct Trial {
    device: DeviceFile,
    /// What the plugin may do, and the file that says so; without it, everything that it asks for.
    policy: Option<(PathBuf, String)>,
    /// Where what plugins store is kept.
    state: Option<PathBuf>,
    /// For a program in place of the journal command.
    scratch: TempDir,
}

impl Trial {
    /// A device with what `device` says.
    ///
    /// # Errors
    /// The file is invalid.
    pub(crate) fn on(device: &Path) -> Result<Trial> {
        Ok(Trial {
            device: DeviceFile::read(device)?,
            policy: None,
            state: None,
            scratch: tempfile::tempdir().context("no temporary folder")?,
        })
    }

    /// Is a device of this type.
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

    /// Keeps what the plugin stores in this folder.
    pub(crate) fn with_state(mut self, folder: Option<&Path>) -> Trial {
        self.state = folder.map(Path::to_owned);
        self
    }

    /// Starts the device with the plugin on it.
    ///
    /// # Errors
    /// What a device's log would say of a plugin that does not load.
    pub(crate) async fn start(&self, component: &Component) -> Result<RunningHost> {
        let manifest = &component.manifest;
        let cache = compiler::cache_folder()?.join("compiled");
        let mut host = self
            .device
            .host(&manifest.name, self.scratch.path())?
            .plugin(&component.file)
            .compiler(compiler::program()?)
            .code_cache(cache);
        let folder = match &self.state {
            Some(state) => state.clone(),
            None => self.scratch.path().join("device"),
        };
        host = host.folder(&folder);
        host = match &self.policy {
            Some((_, policy)) => host.policy(policy.as_str()).pinned_by_policy(),
            None => host.policy(self.device.policy(manifest)).developer_mode(),
        };
        host.try_start().await.map_err(|error| {
            anyhow::anyhow!(self.in_authors_paths(&folder, &format!("{error:#}"), component))
        })
    }

    /// The text with the files that the author named, in place of this device's copies of them.
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
        if let Some((policy, _)) = &self.policy {
            text = text.replace(&shown(folder.join("policy.toml")), &shown(policy.clone()));
        }
        text
    }
}
