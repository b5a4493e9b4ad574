//! The simulation's own cloud: the program, with a database, and with limits that one machine full of devices does not
//! reach.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::process::{Usage, usage};

/// The administrator.
pub(crate) const EMAIL: &str = "admin@localhost.localdomain";
pub(crate) const PASSWORD: &str = "simulation";
/// The maximum time from SIGTERM to its end.
const END: Duration = Duration::from_secs(15);

/// How a cloud is started.
#[derive(Debug, Clone)]
pub struct Setup {
    /// `fleet-cloud`.
    pub program: PathBuf,
    /// `sqlite:PATH` or `postgres://…`; without one, a file of its own.
    pub database: Option<String>,
    /// How many devices are notified of a change at once, and in each following second; without a number, the cloud's
    /// default.
    pub pushes_per_second: Option<u32>,
}

/// A running cloud. It ends when this is dropped.
pub struct Cloud {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Cloud {
    /// Starts a cloud and waits until it listens. Its log goes to ours, from warnings on.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(setup: &Setup) -> Result<Self> {
        let folder = tempfile::tempdir().context("failed to create a temporary folder")?;
        let file = folder.path().join("cloud.sqlite");
        let database = match &setup.database {
            Some(url) => url.clone(),
            None => format!("sqlite:{}", file.display()),
        };
        // All devices have one address, and one key to register with.
        let mut configuration = "[limits]\nrequests_per_minute = 100000000\n".to_owned();
        if let Some(pushes) = setup.pushes_per_second {
            configuration.push_str(&format!("pushes_per_second = {pushes}\n"));
        }
        let file = folder.path().join("cloud.toml");
        fs::write(&file, configuration)?;
        let program = setup.program.display();
        let mut child = Command::new(&setup.program)
            .args(["serve", "--listen", "127.0.0.1:0", "--database", &database])
            .args(["--admin-email", EMAIL, "--admin-password", PASSWORD])
            .arg("--config")
            .arg(&file)
            .env("RUST_LOG", "warn,sqlx=error,fleet_cloud::run=info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("`{program}` cannot be started"))?;
        let log = child.stderr.take();
        // From here on the process ends with this value.
        let mut cloud = Cloud {
            child,
            url: String::new(),
            _folder: folder,
        };
        let mut lines = BufReader::new(log.context("it has no log")?).lines();
        cloud.url = loop {
            let Some(line) = lines.next() else {
                bail!("`{program}` ended by itself; what it said is above");
            };
            let line = line?;
            if let Some((_, address)) = line.trim().split_once("listening at ") {
                break address.to_owned();
            }
            eprintln!("{line}");
        };
        // The output has to be read to its end, or the program blocks.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if !line.contains(" INFO ") {
                    eprintln!("{line}");
                }
            }
        });
        Ok(cloud)
    }

    /// Returns its address: `http://127.0.0.1:1234`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the memory that it has and the CPU time that it has used.
    ///
    /// # Errors
    /// If it is gone.
    pub fn usage(&self) -> Result<Usage> {
        usage(self.child.id()).context("the cloud ended by itself")
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        let begun = Instant::now();
        while begun.elapsed() < END && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
