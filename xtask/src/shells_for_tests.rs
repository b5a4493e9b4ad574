//! The shells in which the tests of `fleet completion` load its scripts, beside bash.
//!
//! [`ShellsForTests::find`] is called once by `cargo xtask test`. The tests find the programs themselves; here they are
//! installed where they can be.

use std::env;

use anyhow::{Result, bail};

use crate::packages::{install_if_debian_root, program};

const SHELLS: [&str; 2] = ["fish", "zsh"];

/// Which of them the tests do not find, and why.
pub(crate) struct ShellsForTests {
    missing: Option<String>,
}

impl ShellsForTests {
    pub(crate) fn find() -> Self {
        let missing = match install_if_debian_root(&missing(), "the tests of shell completion") {
            Err(error) => Some(format!("{error:#}")),
            Ok(()) if missing().is_empty() => None,
            Ok(()) => Some(format!("not installed: {}", missing().join(" "))),
        };
        ShellsForTests { missing }
    }

    /// Says what was skipped; in continuous integration nothing may be.
    pub(crate) fn account_for_skips(&self) -> Result<()> {
        let Some(reason) = &self.missing else {
            return Ok(());
        };
        if env::var_os("CI").is_some() {
            bail!("the completion of some shells was not tested: {reason}");
        }
        println!("\nskipped: the completion of some shells, because {reason}");
        Ok(())
    }
}

fn missing() -> Vec<&'static str> {
    let absent = |shell: &&str| program(shell).is_none();
    SHELLS.into_iter().filter(absent).collect()
}
