//! The dependencies of the programs, checked against `deny.toml` by cargo-deny: licences, sources, duplicate and yanked
//! versions, and known vulnerabilities.
//!
//! Known vulnerabilities are in a git repository that is not on crates.io. If it cannot be reached, everything else is
//! still checked, and a line says what was not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cargo;

/// The version of cargo-deny whose output we know.
const VERSION: &str = "0.20.2";
/// The RustSec advisories, at the address that `deny.toml` contains.
const ADVISORIES: &str = "https://github.com/RustSec/advisory-db";
/// An advisory for a crate that does not exist.
const ADVISORY: &str = "```toml
[advisory]
id = \"RUSTSEC-1970-0001\"
package = \"nothing\"
date = \"2026-01-01\"

[versions]
patched = []
```

# Nothing

Stands in for the advisories where they cannot be reached.
";
/// The time limit for an answer from the advisories' server, after which it counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn check() -> Result<()> {
    let program = cargo_deny()?;
    let mut check = Command::new(program);
    check.current_dir(cargo::repository());
    if are_advisories_reachable()? {
        check.args(["check", "--hide-inclusion-graph"]);
        return cargo::finish(check);
    }
    let stand_in = StandIn::make()?;
    stand_in.give_to(&mut check);
    // Exceptions in `deny.toml` refer to advisories that are missing here.
    check.args([
        "check",
        "--hide-inclusion-graph",
        "--allow",
        "unknown-advisory",
    ]);
    cargo::finish(check)?;
    println!(
        "\nNOT CHECKED: known vulnerabilities of dependencies. {ADVISORIES} cannot be reached from here; licences, \
         sources, and duplicate and yanked versions were checked.\n"
    );
    Ok(())
}

/// Returns the program, which is built once into the target folder if this version is not installed.
fn cargo_deny() -> Result<PathBuf> {
    let tools = cargo::target_folder().join("tools");
    let ours = tools.join("bin/cargo-deny");
    for program in [PathBuf::from("cargo-deny"), ours.clone()] {
        if version_of(&program).as_deref() == Some(VERSION) {
            return Ok(program);
        }
    }
    println!("building cargo-deny {VERSION}, once");
    let building = tools.join("building");
    // It runs for seconds, so optimizing it would take longer than it saves.
    let mut install = cargo::cargo(["install", "cargo-deny", "--locked", "--debug", "--force"]);
    install
        .args(["--version", VERSION, "--root"])
        .arg(&tools)
        .arg("--target-dir")
        .arg(&building)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo::finish(install)?;
    fs::remove_dir_all(&building)
        .with_context(|| format!("failed to remove `{}`", building.display()))?;
    Ok(ours)
}

/// Returns the version that a cargo-deny reports, or `None` if there is none.
fn version_of(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().strip_prefix("cargo-deny ")?.to_owned())
}

fn are_advisories_reachable() -> Result<bool> {
    let mut asking = Command::new("git")
        .args(["ls-remote", "--exit-code", ADVISORIES, "refs/heads/main"])
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("failed to start `git`; is it installed?")?;
    let begun = Instant::now();
    loop {
        if let Some(status) = asking.try_wait()? {
            return Ok(status.success());
        }
        if begun.elapsed() > PATIENCE {
            asking.kill()?;
            asking.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A database of advisories that affects no real crate: cargo-deny checks for yanked versions only if it has a
/// database, and refuses an empty one.
struct StandIn {
    repository: PathBuf,
}

impl StandIn {
    fn make() -> Result<Self> {
        let repository = cargo::target_folder().join("tools/no-advisories");
        clear(&repository)?;
        clear(&cargo::repository().join("target/advisory-dbs"))?;
        let folder = repository.join("crates/nothing");
        fs::create_dir_all(&folder)
            .with_context(|| format!("failed to create `{}`", folder.display()))?;
        fs::write(folder.join("RUSTSEC-1970-0001.md"), ADVISORY)?;
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "crates"],
            &["commit", "--quiet", "--message=None"],
        ] {
            let status = Command::new("git")
                .current_dir(&repository)
                .args(["-c", "user.name=xtask", "-c", "user.email=xtask@localhost"])
                .args(arguments)
                .status()
                .context("failed to start `git`; is it installed?")?;
            if !status.success() {
                bail!("`git {}` failed ({status})", arguments.join(" "));
            }
        }
        Ok(StandIn { repository })
    }

    /// Makes git use it instead of the real one.
    fn give_to(&self, command: &mut Command) {
        let here = format!("url.file://{}.insteadOf", self.repository.display());
        command
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", here)
            .env("GIT_CONFIG_VALUE_0", ADVISORIES);
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // A later check must not use the copy instead of the real one.
        for folder in [
            self.repository.clone(),
            cargo::repository().join("target/advisory-dbs"),
        ] {
            if let Err(error) = clear(&folder) {
                eprintln!("{error:#}");
            }
        }
    }
}

fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove `{}`", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn read(name: &str) -> toml::Table {
        let text = fs::read_to_string(cargo::repository().join(name)).expect("the file");
        toml::from_str(&text).expect("TOML")
    }

    fn rows<'a>(table: &'a toml::Table, path: [&str; 2]) -> Vec<&'a toml::Table> {
        let [section, key] = path;
        let rows = table[section][key].as_array().expect("a list");
        rows.iter()
            .map(|row| row.as_table().expect("a table with its reason"))
            .collect()
    }

    #[test]
    fn an_exception_of_what_may_be_built_from_has_a_reason_and_is_of_a_crate_that_is_there() {
        let (deny, lock) = (read("deny.toml"), read("Cargo.lock"));
        let packages = lock["package"].as_array().expect("packages");
        let locked: BTreeSet<String> = packages
            .iter()
            .map(|it| {
                format!(
                    "{}@{}",
                    it["name"].as_str().unwrap_or(""),
                    it["version"].as_str().unwrap_or("")
                )
            })
            .collect();
        for row in rows(&deny, ["bans", "skip"]) {
            let it = row["crate"].as_str().expect("a crate");
            assert!(locked.contains(it), "`{it}` is not built any more");
        }
        let all = [["bans", "skip"], ["bans", "deny"], ["advisories", "ignore"]];
        for row in all.into_iter().flat_map(|path| rows(&deny, path)) {
            let reason = row.get("reason").and_then(toml::Value::as_str);
            assert!(reason.is_some_and(|reason| !reason.is_empty()), "{row:?}");
        }
        for what in ["unknown-registry", "unknown-git"] {
            assert_eq!(deny["sources"][what].as_str(), Some("deny"), "{what}");
        }
        for package in packages {
            let from = package.get("source").and_then(toml::Value::as_str);
            let from_crates_io = from
                .is_none_or(|from| from == "registry+https://github.com/rust-lang/crates.io-index");
            assert!(from_crates_io, "{package}");
        }
    }
}
