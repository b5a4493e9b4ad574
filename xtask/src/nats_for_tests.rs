//! The NATS server that tests of several replicas start, each one of its own.
//!
//! [`NatsForTests::find`] is called once by `cargo xtask test`. The tests find the program themselves; here it
//! is installed where it can be.

use std::env;

use anyhow::{Result, bail};

use crate::packages::{install_if_debian_root, program};

/// The variable that the tests read: a program that is none of the system's.
const NATS: &str = "SUPERVISOR_TEST_NATS";
const PROGRAM: &str = "nats-server";

/// Whether the tests find a server.
pub(crate) enum NatsForTests {
    Found,
    /// None, and why.
    Missing(String),
}

impl NatsForTests {
    pub(crate) fn find() -> Self {
        if env::var_os(NATS).is_some() || program(PROGRAM).is_some() {
            return NatsForTests::Found;
        }
        if let Err(error) = install_if_debian_root(&[PROGRAM], "the tests of several replicas") {
            return NatsForTests::Missing(format!("{error:#}"));
        }
        match program(PROGRAM) {
            Some(_) => NatsForTests::Found,
            None => NatsForTests::Missing(format!("not installed: {PROGRAM}")),
        }
    }

    /// Says what was skipped; in continuous integration nothing may be.
    pub(crate) fn account_for_skips(&self) -> Result<()> {
        let NatsForTests::Missing(reason) = self else {
            return Ok(());
        };
        if env::var_os("CI").is_some() {
            bail!("the tests of several replicas were skipped: {reason}");
        }
        println!(
            "\nskipped: the tests of several replicas of the cloud, because {reason}\n\
             to run them, install {PROGRAM}, or have {NATS} name the program"
        );
        Ok(())
    }
}
