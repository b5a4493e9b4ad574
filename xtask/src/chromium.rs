//! The browser that the dashboard's pages are tried in: Debian's Chromium, where there is one or we may install
//! it. The tests start and end it themselves.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::packages::{install_if_debian_root, program};

/// The variable that the tests read: the program.
const CHROMIUM: &str = "SUPERVISOR_TEST_CHROMIUM";

/// Where the tests of the dashboard find a browser.
pub(crate) enum ChromiumForTests {
    /// The caller names one in the environment.
    Named,
    /// The machine's.
    Installed(PathBuf),
    /// None, and why.
    Missing(String),
}

impl ChromiumForTests {
    pub(crate) fn find() -> Self {
        if env::var_os(CHROMIUM).is_some() {
            println!("tests of the dashboard: the browser that {CHROMIUM} names");
            return ChromiumForTests::Named;
        }
        match installed() {
            Ok(program) => {
                println!("tests of the dashboard: {}", program.display());
                ChromiumForTests::Installed(program)
            }
            Err(error) => {
                let reason = format!("{error:#}");
                println!("tests of the dashboard: {reason}");
                ChromiumForTests::Missing(reason)
            }
        }
    }

    pub(crate) fn give_to(&self, command: &mut Command) {
        if let ChromiumForTests::Installed(program) = self {
            command.env(CHROMIUM, program);
        }
    }

    /// Says what was skipped; in continuous integration nothing may be.
    pub(crate) fn account_for_skips(&self) -> Result<()> {
        let ChromiumForTests::Missing(reason) = self else {
            return Ok(());
        };
        if env::var_os("CI").is_some() {
            bail!("the tests of the dashboard in a browser were skipped: {reason}");
        }
        println!(
            "\nskipped: the tests of the dashboard in a browser, because {reason}\n\
             to run them, set {CHROMIUM} to the program of a Chromium or Chrome"
        );
        Ok(())
    }
}

fn installed() -> Result<PathBuf> {
    if program("chromium").is_none() {
        install_if_debian_root(&["chromium"], "the tests of the dashboard")?;
    }
    program("chromium").context("not installed: chromium")
}
