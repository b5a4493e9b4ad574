//! An author with the tool and an empty folder.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

/// The tool.
pub(crate) const TOOL: &str = env!("CARGO_BIN_EXE_supervisor-plugin");

/// Returns the folder for the tool's downloads, which all tests share.
pub(crate) fn downloads() -> PathBuf {
    tests::repository().join("target/tool-cache")
}

/// Returns the folder in which the tool keeps compiled code.
pub(crate) fn compiled_code() -> PathBuf {
    let version = env!("CARGO_PKG_VERSION");
    downloads().join(format!("supervisor-plugin/{version}/compiled"))
}

/// An author, and the author's files.
pub(crate) struct Author {
    folder: TempDir,
}

/// The output of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Author {
    pub(crate) fn new() -> Author {
        Author {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Returns an author who has begun the project `rails` in this language.
    pub(crate) fn with_project(language: &str) -> Author {
        let author = Author::new();
        author
            .run(&format!("new rails --lang {language}"))
            .succeeds();
        author
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        fs::write(self.path(below), text).unwrap();
    }

    pub(crate) fn read(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).unwrap()
    }

    /// Appends to a file.
    pub(crate) fn append(&self, below: &str, more: &str) {
        self.write(below, &(self.read(below) + more));
    }

    /// Replaces a text that occurs at least once.
    pub(crate) fn edit(&self, below: &str, from: &str, to: &str) {
        let text = self.read(below);
        assert!(text.contains(from), "`{from}` in {text}");
        self.write(below, &text.replace(from, to));
    }

    /// Returns the command that runs the tool in this folder with these words.
    fn command<'a>(&self, folder: &Path, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(TOOL);
        self.set_environment(command.args(words).current_dir(folder));
        command
    }

    fn set_environment(&self, command: &mut Command) {
        command
            .stdin(Stdio::null())
            // Shared with the other tests' crates, so that none is built twice: with the settings of this repository's
            // profile.
            .env("CARGO_TARGET_DIR", tests::repository().join("target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .env("CARGO_PROFILE_DEV_LTO", "off")
            .env("XDG_CACHE_HOME", downloads())
            // This author's credentials for registries.
            .env("DOCKER_CONFIG", self.path("docker"))
            .env("SUPERVISOR_DIST", tests::distribution());
    }

    /// Types lines into a shell in the author's folder, which stops at the first one that fails. The tool is on the
    /// path.
    pub(crate) fn shell(&self, lines: &str, variables: &[(&str, String)]) -> CommandOutput {
        CommandOutput::by(self.shell_command(lines, variables))
    }

    /// Types a line into such a shell, whose command runs until it is dropped.
    pub(crate) fn start_shell(&self, line: &str, variables: &[(&str, String)]) -> RunningCommand {
        // The command takes the place of the shell, so that it receives the signals.
        RunningCommand::start(self.shell_command(&format!("exec {line}"), variables))
    }

    fn shell_command(&self, lines: &str, variables: &[(&str, String)]) -> Command {
        let tools = Path::new(TOOL).parent().unwrap().display();
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("sh");
        command.args(["-e", "-c", lines]).current_dir(self.path(""));
        self.set_environment(&mut command);
        command.env("PATH", format!("{tools}:{path}"));
        for (name, value) in variables {
            command.env(name, value);
        }
        command
    }

    /// Runs a command in a folder below the author's.
    pub(crate) fn run_in(&self, folder: &str, words: &str) -> CommandOutput {
        CommandOutput::by(self.command(&self.path(folder), words.split_whitespace()))
    }

    pub(crate) fn run(&self, words: &str) -> CommandOutput {
        self.run_in("", words)
    }

    /// Runs a command with arguments that contain spaces.
    pub(crate) fn run_words(&self, words: &[&str]) -> CommandOutput {
        CommandOutput::by(self.command(&self.path(""), words.iter().copied()))
    }

    /// Creates a project whose dependencies have the versions of this repository: they are built already.
    pub(crate) fn new_project(&self, name: &str) {
        self.run(&format!("new {name}")).succeeds();
        let lock = tests::repository().join("Cargo.lock");
        fs::copy(lock, self.path(name).join("Cargo.lock")).unwrap();
    }

    /// Copies an example of this repository, without its build output.
    pub(crate) fn copy_example(&self, name: &str) {
        let example = tests::repository().join("examples").join(name);
        for below in ["", "src", "test"] {
            fs::create_dir_all(self.path(name).join(below)).unwrap();
            for entry in fs::read_dir(example.join(below)).unwrap().flatten() {
                let path = entry.path();
                if path.is_file() && path.extension().is_none_or(|extension| extension != "wasm") {
                    fs::copy(&path, self.path(name).join(below).join(entry.file_name())).unwrap();
                }
            }
        }
    }

    /// Starts a command that runs until it is dropped.
    pub(crate) fn start_in(&self, folder: &str, words: &str) -> RunningCommand {
        RunningCommand::start(self.command(&self.path(folder), words.split_whitespace()))
    }
}

impl CommandOutput {
    fn by(mut command: Command) -> CommandOutput {
        let output: Output = command.output().unwrap();
        CommandOutput {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn succeeds(self) -> CommandOutput {
        assert_eq!(self.code, 0, "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn fails(self) -> CommandOutput {
        assert_eq!(self.code, 1, "{}\n{}", self.out, self.err);
        self
    }

    /// The document that `--json` prints.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// A running command.
pub(crate) struct RunningCommand {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl RunningCommand {
    /// Returns everything that it has printed so far.
    pub(crate) fn printed(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    fn start(mut command: Command) -> RunningCommand {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let reader = BufReader::new(child.stderr.take().unwrap());
        let seen = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                seen.lock().unwrap().push(line);
            }
        });
        RunningCommand { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Interrupts it, as Ctrl-C does in a terminal, and waits until it has ended.
    pub(crate) async fn interrupt(&mut self) -> ExitStatus {
        self.send_signal("INT");
        self.until_ended().await
    }

    /// Sends it a signal, such as `TERM`.
    pub(crate) fn send_signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.pid());
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it has ended.
    pub(crate) async fn until_ended(&mut self) -> ExitStatus {
        tests::until("the command to end", || {
            let status = self.child.try_wait().unwrap();
            std::future::ready(status.ok_or("it still runs"))
        })
        .await
    }

    /// Waits until it has printed a line that contains this.
    pub(crate) async fn until_printed(&self, text: &str) -> String {
        tests::until(text, || async {
            let lines = self.lines.lock().unwrap();
            match lines.iter().find(|line| line.contains(text)) {
                Some(line) => Ok(line.clone()),
                None => Err(lines.join("\n")),
            }
        })
        .await
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
