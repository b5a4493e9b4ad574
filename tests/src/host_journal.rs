//! A host's journal, created by systemd's own programs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::until::until;

const WRITER: &str = "/lib/systemd/systemd-journal-remote";
const MACHINE: &str = "0123456789abcdef0123456789abcdef";
const BOOT: &str = "11111111111111111111111111111111";
/// When the first entry is logged, in seconds since 1970, and the interval of the following ones.
const BEGAN: u64 = 1_700_000_000;
const APART: u64 = 60;

/// Journal files below a host root, of a host that keeps logging while this lives.
pub struct HostJournal {
    root: PathBuf,
    writer: Child,
    entries: Option<ChildStdin>,
    written: u64,
}

impl HostJournal {
    /// A journal without entries; returns `None`, and prints a line about it, if the programs for it are missing.
    ///
    /// # Panics
    /// If the programs exist and do not run.
    #[must_use]
    pub fn below(host_root: &Path) -> Option<Self> {
        let has_reader = Command::new("journalctl")
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !has_reader || !Path::new(WRITER).exists() {
            println!("SKIPPED: no journals (journalctl or systemd-journal-remote is missing)");
            return None;
        }
        let folder = host_root.join("var/log/journal").join(MACHINE);
        fs::create_dir_all(&folder).expect("a folder for journals");
        let mut writer = Command::new(WRITER)
            .arg("--output")
            .arg(folder.join("system.journal"))
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("systemd-journal-remote runs");
        Some(HostJournal {
            root: host_root.to_owned(),
            entries: writer.stdin.take(),
            writer,
            written: 0,
        })
    }

    /// Logs an entry, a minute after the previous one, and waits until it and all earlier ones can be read.
    ///
    /// # Panics
    /// If they cannot be read in time.
    pub async fn log(&mut self, unit: &str, identifier: &str, message: &[u8]) {
        self.begin_to_log(unit, identifier, message);
        until("the journal to have the entries", || async {
            let lines = self.print(&["--output=cat", "--output-fields=_PID"]);
            let found = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
            if found == self.written {
                Ok(())
            } else {
                Err(found)
            }
        })
        .await;
    }

    /// Logs an entry, a minute after the previous one, without waiting until it can be read.
    ///
    /// # Panics
    /// If the writer has ended.
    pub fn begin_to_log(&mut self, unit: &str, identifier: &str, message: &[u8]) {
        let time = (BEGAN + self.written * APART) * 1_000_000;
        let since_boot = (1 + self.written * APART) * 1_000_000;
        let number = self.written;
        let mut entry = format!(
            "__REALTIME_TIMESTAMP={time}\n__MONOTONIC_TIMESTAMP={since_boot}\n_BOOT_ID={BOOT}\n\
             _MACHINE_ID={MACHINE}\n_HOSTNAME=kitchen\nPRIORITY=6\n_PID={number}\n\
             SYSLOG_IDENTIFIER={identifier}\n_SYSTEMD_UNIT={unit}\nMESSAGE\n"
        )
        .into_bytes();
        // In the format that allows any bytes (systemd's journal export format).
        entry.extend((message.len() as u64).to_le_bytes());
        entry.extend(message);
        entry.extend(b"\n\n");
        let entries = self.entries.as_mut().expect("the writer's input");
        entries.write_all(&entry).expect("the writer takes entries");
        self.written += 1;
    }

    /// Returns what the journal command prints with these arguments, as a user of the host would see it.
    ///
    /// # Panics
    /// If it cannot be run.
    #[must_use]
    pub fn print(&self, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new("journalctl")
            .arg("--root")
            .arg(&self.root)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("journalctl runs");
        output.stdout
    }

    /// Returns the processes that are reading it.
    #[must_use]
    pub fn readers(&self) -> Vec<i32> {
        let root = self.root.to_string_lossy().into_owned();
        let processes = fs::read_dir("/proc").expect("the processes");
        processes
            .filter_map(|entry| {
                let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
                let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
                let command = String::from_utf8_lossy(&command).into_owned();
                let mut words = command.split('\0');
                let is_reader = words.next()?.ends_with("journalctl");
                (is_reader && words.any(|word| word.contains(&root))).then_some(pid)
            })
            .collect()
    }
}

impl Drop for HostJournal {
    fn drop(&mut self) {
        drop(self.entries.take());
        let _ = self.writer.kill();
        let _ = self.writer.wait();
    }
}
