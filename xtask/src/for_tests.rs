//! Servers, a browser and programs of the system, which tests need in addition to our programs. Missing ones are
//! installed or started if possible; tests that need the others are skipped, and reported at the end.

use std::env;
use std::ffi::OsString;
use std::process::Command;
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};

use crate::packages::{RequiredPackage, install_quietly, program, require};
use crate::private_docker;
use crate::private_postgres::{self, POSTGRES, PrivatePostgres};
use crate::test_kernel::{self, KERNEL};

/// The variable that the tests of the dashboard read: the program of a browser.
const CHROMIUM: &str = "SUPERVISOR_TEST_CHROMIUM";
/// The variable that the tests of several replicas read: a program that does not come from the system.
const NATS: &str = "SUPERVISOR_TEST_NATS";

const BROWSER: &[RequiredPackage] = &[("chromium", "chromium")];
const BROKER: &[RequiredPackage] = &[("nats-server", "nats-server")];
/// The shells, in addition to bash, in which the tests of `fleet completion` load its scripts.
const SHELLS: &[RequiredPackage] = &[("fish", "fish"), ("zsh", "zsh")];
/// Replacements for a device's host: a system bus with systemd's services on it, journals, a redirector of connections,
/// a separate clock, the filters of a unit.
const STAND_INS: &[RequiredPackage] = &[
    ("dbus-daemon", "dbus-daemon"),
    (
        "/usr/lib/python3/dist-packages/dbusmock",
        "python3-dbusmock",
    ),
    ("redsocks", "redsocks"),
    ("iptables", "iptables"),
    ("nft", "nftables"),
    ("ip", "iproute2"),
    ("faketime", "faketime"),
    ("journalctl", "systemd"),
    ("/usr/share/doc/python3-seccomp", "python3-seccomp"),
    (
        "/lib/systemd/systemd-journal-remote",
        "systemd-journal-remote",
    ),
];

/// The programs with which the tool of plugin authors installs the toolchains of other languages.
const LANGUAGES: &[RequiredPackage] = &[
    ("python3", "python3"),
    ("/usr/share/doc/python3-venv", "python3-venv"),
    ("node", "nodejs"),
    ("npm", "npm"),
];

/// Begins to install and create missing things while programs are built. If that fails, the function that needs them
/// tries again, and reports the failure.
pub(crate) fn begin() -> JoinHandle<()> {
    std::thread::spawn(|| {
        let needed = [
            BROWSER,
            BROKER,
            SHELLS,
            STAND_INS,
            LANGUAGES,
            private_docker::NEEDED,
            private_postgres::PACKAGE,
            test_kernel::TOOLS,
        ];
        if let Err(error) = install_quietly(&needed.concat()) {
            println!("{error:#}");
        }
        if env::var_os(KERNEL).is_none() {
            // If it cannot be created, the tests that need it are skipped.
            let _ = test_kernel::make();
        }
    })
}

/// Tests that this machine cannot run.
pub(crate) struct SkippedTests {
    /// What they are called, such as `the tests on PostgreSQL`.
    pub(crate) tests: &'static str,
    pub(crate) reason: String,
    /// How to run them after all, as the continuation of `to run them,`.
    pub(crate) remedy: Option<String>,
}

impl SkippedTests {
    /// Reports the skipped tests.
    ///
    /// # Errors
    /// In continuous integration, where no tests may be skipped.
    pub(crate) fn account_for(&self) -> Result<()> {
        let SkippedTests { tests, reason, .. } = self;
        if env::var_os("CI").is_some() {
            bail!("{tests} were skipped: {reason}");
        }
        println!("\nskipped: {tests}, because {reason}");
        if let Some(remedy) = &self.remedy {
            println!("to run them, {remedy}");
        }
        Ok(())
    }
}

/// Something that some tests find through an environment variable.
pub(crate) struct ForTests<T> {
    variable: &'static str,
    /// Our own instance, which ends with this value, and the variable's value for it; `None` if the caller has named
    /// one.
    ours: Option<(T, OsString)>,
    pub(crate) skipped: Option<SkippedTests>,
}

impl<T> ForTests<T> {
    /// Uses what `variable` names already, or else what `start` creates.
    fn find(
        tests: &'static str,
        variable: &'static str,
        remedy: String,
        start: impl FnOnce() -> Result<(T, OsString)>,
    ) -> Self {
        let mut found = ForTests {
            variable,
            ours: None,
            skipped: None,
        };
        if env::var_os(variable).is_some() {
            println!("{tests}: with what {variable} names");
            return found;
        }
        match start() {
            Ok(ours) => {
                println!("{tests}: with {}", ours.1.display());
                found.ours = Some(ours);
            }
            Err(error) => {
                let reason = format!("{error:#}");
                println!("{tests}: {reason}");
                found.skipped = Some(SkippedTests {
                    tests,
                    reason,
                    remedy: Some(remedy),
                });
            }
        }
        found
    }

    /// Sets the variable for the program.
    pub(crate) fn give_to(&self, command: &mut Command) {
        if let Some((_, value)) = &self.ours {
            command.env(self.variable, value);
        }
    }
}

/// A server for the tests of the database.
pub(crate) fn postgres() -> ForTests<PrivatePostgres> {
    let remedy = format!(
        "set {POSTGRES} to the address of a server (postgres://USER@HOST:PORT/postgres) whose user may create databases; those on SQLite ran"
    );
    let tests = "the tests on PostgreSQL";
    ForTests::find(tests, POSTGRES, remedy, || {
        let server = PrivatePostgres::start()?;
        let url = server.url().into();
        Ok((server, url))
    })
}

/// A browser for the tests of the dashboard, which start and end it themselves.
pub(crate) fn chromium() -> ForTests<()> {
    let remedy = format!("set {CHROMIUM} to the program of a Chromium or Chrome");
    let tests = "the tests of the dashboard in a browser";
    ForTests::find(tests, CHROMIUM, remedy, || {
        require(BROWSER, "the tests of the dashboard")?;
        let browser = program("chromium").context("not installed: chromium")?;
        Ok(((), browser.into()))
    })
}

/// The program of the NATS servers that tests of several replicas start.
pub(crate) fn nats() -> ForTests<()> {
    let remedy = format!("install nats-server, or have {NATS} name the program");
    let tests = "the tests of several replicas of the cloud";
    ForTests::find(tests, NATS, remedy, || {
        require(BROKER, "the tests of several replicas")?;
        Ok(((), "nats-server".into()))
    })
}

/// A kernel with mocks of hardware, which tests boot in a virtual machine.
pub(crate) fn kernel() -> ForTests<()> {
    let remedy = format!(
        "run them on Debian for x86-64, or have {KERNEL} name a folder with a kernel as xtask/src/test_kernel.sh makes it"
    );
    let tests = "the tests of GPIO lines and I2C buses of the kernel";
    ForTests::find(tests, KERNEL, remedy, || {
        let folder = test_kernel::make()?;
        Ok(((), folder.into()))
    })
}

/// Returns the tests of shell completion that are skipped because a shell is missing.
pub(crate) fn shells() -> Option<SkippedTests> {
    let error = require(SHELLS, "the tests of shell completion").err()?;
    Some(SkippedTests {
        tests: "the tests of completion in some shells",
        reason: format!("{error:#}"),
        remedy: None,
    })
}

/// Returns the tests of plugins in other languages than Rust that are skipped because a toolchain is missing.
pub(crate) fn languages() -> Option<SkippedTests> {
    let error = require(LANGUAGES, "the tests of plugins in other languages").err()?;
    Some(SkippedTests {
        tests: "the tests of plugins in other languages",
        reason: format!("{error:#}"),
        remedy: None,
    })
}

/// Returns the tests of the host that are skipped because a replacement for a part of it is missing.
pub(crate) fn stand_ins() -> Option<SkippedTests> {
    let missing = require(STAND_INS, "the tests of the host").err();
    let mut reasons: Vec<String> = missing.iter().map(|error| format!("{error:#}")).collect();
    if !rustix::process::geteuid().is_root() {
        reasons.push("a private network for a test needs root".to_owned());
    }
    (!reasons.is_empty()).then(|| SkippedTests {
        tests: "the suites on the host's stand-ins",
        reason: reasons.join("; "),
        remedy: None,
    })
}
