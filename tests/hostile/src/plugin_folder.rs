//! The plugin folder and the policy of the device that components attack.
//!
//! In a component's comment:
//! - `policy: LINE`: a line of its section, which replaces the one with that key or is added (`sha256`, `routes`,
//!   `grants`, `limits`); `none` for a file that is not pinned;
//! - `file: link TARGET`, `file: pipe`, `file: folder`, `file: mode 666`: what is put into the folder instead of a
//!   plain file;
//! - `signature: pipe`: what is put next to it as its signature.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use tests::{Builder, Supervisor, distribution};

use crate::attack::Attack;

/// The limits of a hostile component on CPU time and time, unless its file sets others: lower than those of plugins, so
/// that sixty of them do not take minutes.
const LIMITS: &str = "limits = { cpu_ms = 300, wall_ms = 3000 }";
/// A harmless plugin in the same folder.
const NEIGHBOUR: &str = "device_info";
const NEIGHBOURS_POLICY: &str = "[plugins.device-info]\ngrants = [\"device\"]\n";

/// A plugin folder with its policy.
pub struct PluginFolder {
    folder: TempDir,
}

impl PluginFolder {
    /// Creates the folder of a device that trusts all of these, each by its digest.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new(components: &[(Attack, Vec<u8>)]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("plugins"))?;
        let file = format!("{NEIGHBOUR}.wasm");
        fs::copy(
            distribution().join("plugins").join(&file),
            folder.path().join("plugins").join(&file),
        )
        .context("the distribution has no plugin that means well")?;
        let mut policy = NEIGHBOURS_POLICY.to_owned();
        for (attack, file) in components {
            policy += &section(attack, file);
        }
        fs::write(folder.path().join("policy.toml"), policy)?;
        Ok(PluginFolder { folder })
    }

    /// A supervisor with these plugins.
    #[must_use]
    pub fn device(&self) -> Builder {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        Supervisor::on_wasm()
            .argument("--plugin-dir")
            .argument(path("plugins"))
            .argument("--policy")
            .argument(path("policy.toml"))
    }

    fn path(&self, attack: &Attack) -> PathBuf {
        let name = format!("{}.wasm", attack.name);
        self.folder.path().join("plugins").join(name)
    }

    /// Puts a component into the folder, as if it were installed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn install(&self, attack: &Attack, content: &[u8]) -> Result<()> {
        let path = self.path(attack);
        let beside = path.with_extension("part");
        let kind = attack.first("file").unwrap_or("plain");
        match kind.split_once(' ').unwrap_or((kind, "")) {
            ("plain", _) => fs::write(&beside, content)?,
            ("mode", mode) => {
                fs::write(&beside, content)?;
                let mode = u32::from_str_radix(mode, 8)?;
                fs::set_permissions(&beside, fs::Permissions::from_mode(mode))?;
            }
            ("link", target) => symlink(target, &beside)?,
            ("folder", _) => fs::create_dir(&beside)?,
            ("pipe", _) => make_pipe(&beside)?,
            _ => bail!("`file: {kind}`"),
        }
        match attack.first("signature") {
            None => {}
            Some("pipe") => make_pipe(&signature_of(&path))?,
            Some(other) => bail!("`signature: {other}`"),
        }
        Ok(fs::rename(beside, path)?)
    }

    /// Removes it again.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, attack: &Attack) -> Result<()> {
        let path = self.path(attack);
        if path.symlink_metadata()?.is_dir() {
            fs::remove_dir(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
        if attack.first("signature").is_some() {
            fs::remove_file(signature_of(&path))?;
        }
        Ok(())
    }
}

fn signature_of(file: &Path) -> PathBuf {
    file.with_added_extension("minisig")
}

fn make_pipe(path: &Path) -> Result<()> {
    let made = Command::new("mkfifo").arg(path).status()?;
    if made.success() {
        Ok(())
    } else {
        bail!("mkfifo: {made}")
    }
}

/// Returns its section of the policy.
fn section(attack: &Attack, file: &[u8]) -> String {
    let name = &attack.name;
    let overrides: Vec<_> = attack.all("policy").collect();
    if overrides == ["none"] {
        return String::new();
    }
    let grants: Vec<_> = attack
        .all("grants")
        .map(|name| format!("\"{name}\""))
        .collect();
    let limits = match attack.first("limits") {
        Some(limits) => format!("limits = {{ {limits} }}"),
        None => LIMITS.to_owned(),
    };
    let usual = [
        format!("sha256 = [\"{}\"]", hex::encode(Sha256::digest(file))),
        format!("routes = [\"/v3/{name}\"]"),
        format!("grants = [{}]", grants.join(", ")),
        limits,
    ];
    let key = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let mut lines = vec![format!("[plugins.{name}]")];
    let is_usual = |line: &String| overrides.iter().all(|other| key(other) != key(line));
    lines.extend(usual.into_iter().filter(is_usual));
    lines.extend(overrides.iter().map(|line| (*line).to_owned()));
    lines.push(String::new());
    lines.join("\n")
}
