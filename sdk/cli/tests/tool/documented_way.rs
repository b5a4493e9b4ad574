//! docs/plugins.md, "From nothing to a signed plugin on a device": the commands of the page, typed exactly as printed,
//! in each language; and "A supervisor on your own machine".

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use held_port::HeldPort;
use tests::{Supervisor, until, until_within};

use crate::author::{Author, CommandOutput, TOOL};
use crate::languages::{can_build, check_new_project};

/// The time limit for compiling the page's plugin on a busy machine: Python's has 20 MB.
const COMPILED_WITHIN: Duration = Duration::from_secs(1200);
const PAGE: &str = include_str!("../../../../docs/plugins.md");

/// The commands of the section: those for the author's machine, and those for the device, the last of which sends a
/// request to the plugin.
struct Commands {
    author: Vec<String>,
    device: Vec<String>,
    ask: String,
}

/// Returns the section of the page with this title.
fn section(title: &str) -> &'static str {
    let first = format!("{title}\n");
    let mut sections = PAGE.split("\n## ");
    sections
        .find(|section| section.starts_with(&first))
        .unwrap()
}

/// Returns the lines of each block of shell commands in a section.
fn shell_blocks(section: &str) -> Vec<Vec<String>> {
    let blocks = section.split("```sh\n").skip(1).map(|block| {
        let (lines, _) = block.split_once("```").unwrap();
        lines.lines().map(str::to_owned).collect()
    });
    blocks.collect()
}

fn commands() -> Commands {
    let section = section("From nothing to a signed plugin on a device");
    let mut blocks = shell_blocks(section).into_iter();
    let author = blocks.next().unwrap();
    let mut device = blocks.next().unwrap();
    let ask = device.pop().unwrap();
    assert!(ask.starts_with("curl "), "{ask}");
    assert!(blocks.next().is_none());
    let all = author.iter().chain(&device).chain([&ask]);
    let count = all.filter(|line| !line.starts_with("cd ")).count();
    assert_eq!(count, 6);
    let promise = "\nFive commands, besides `cd`, create a signed plugin and install it on a device, and a sixth calls it.";
    assert!(section.contains(promise));
    Commands {
        author,
        device,
        ask,
    }
}

/// Replaces a text that occurs at least once.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "`{from}` in {text}");
    text.replace(from, to)
}

/// The device of the page: its layout, and the home of root, which the author's machine has as well.
struct Device {
    supervisor: Supervisor,
    author: Author,
}

impl Device {
    async fn start(author: Author) -> Device {
        for folder in ["layout", "layout/bin", "layout/plugins"] {
            fs::create_dir(author.path(folder)).unwrap();
        }
        symlink(
            tests::distribution().join("bin/supervisor"),
            author.path("layout/bin/supervisor"),
        )
        .unwrap();
        author.write("layout/policy.toml", "");
        author.write("supervisor.toml", "");
        let path = |below: &str| author.path(below).display().to_string();
        let supervisor = Supervisor::on_wasm()
            .argument("--plugin-dir")
            .argument(path("layout/plugins"))
            .argument("--policy")
            .argument(path("layout/policy.toml"))
            .start()
            .await;
        Device { supervisor, author }
    }

    /// Types lines as root of the device, with its own paths and address in place of the page's.
    fn run(&self, lines: &str) -> CommandOutput {
        let path = |below: &str| self.author.path(below).display().to_string();
        let variables = [
            ("HOME", path("home")),
            ("SUPERVISOR_POLICY", path("layout/policy.toml")),
            ("SUPERVISOR_PLUGIN_DIR", path("layout/plugins")),
            (
                "SUPERVISOR_STATE_DIR",
                self.supervisor.state_dir().display().to_string(),
            ),
        ];
        self.author.shell(lines, &variables)
    }
}

/// Needs a runtime with several threads: while a command runs in one of them, the connection to the device is closed in
/// another when the device closes it.
async fn walk(language: &str) {
    if !can_build(language) {
        return;
    }
    let (device, _) = walk_with(language, &[]).await;
    // `first_plugin.rs` does this in Rust.
    if language != "rust" {
        check_new_project(&device.author, language);
    }
}

/// How long the page's commands took: those of the author, and those of the device's owner until the answer.
struct WalkTimes {
    author: Duration,
    owner: Duration,
}

/// Types the commands; those of the author with these environment variables. Returns the device with the plugin, and how
/// long they took.
async fn walk_with(language: &str, variables: &[(&str, String)]) -> (Device, WalkTimes) {
    let Commands {
        author: commands,
        device: commands_of_owner,
        ask,
    } = commands();
    let author = Author::new();
    fs::create_dir(author.path("home")).unwrap();
    let mut typed = Vec::new();
    for line in commands {
        if line.starts_with("supervisor-plugin keygen ") {
            // Nobody is there to type a password.
            typed.push(replaced(&line, "acme.key", "acme.key --no-password"));
        } else if line.starts_with("supervisor-plugin new ") {
            typed.push(replaced(
                &line,
                "--lang python",
                &format!("--lang {language}"),
            ));
            // The dependencies of a plugin in Rust then have the versions of this repository, which are built already.
            let lock = tests::repository().join("Cargo.lock");
            typed.push(format!("cp {} rails/", lock.display()));
        } else if line.starts_with("scp ") {
            // The device is this machine.
            let copied = replaced(&line, "scp ", "cp ");
            typed.push(replaced(&copied, "root@board:", "../home/"));
        } else {
            typed.push(line);
        }
    }
    let begin = Instant::now();
    author.shell(&typed.join("\n"), variables).succeeds();
    let time_of_author = begin.elapsed();

    let device = Device::start(author).await;
    let bin = device.author.path("layout/bin").display().to_string();
    let typed = replaced(
        &commands_of_owner.join("\n"),
        "/usr/lib/supervisor/bin",
        &bin,
    );
    // The command waits for a device that does nothing else.
    let wait = format!("acme.key.pub --wait {}", COMPILED_WITHIN.as_secs());
    let typed = replaced(&typed, "acme.key.pub", &wait);
    let begin = Instant::now();
    let granted = device.run(&typed).succeeds();
    for expected in [
        "[plugins.rails]",
        "installed rails 0.1.0: `",
        "\nrails 0.1.0 runs\n",
    ] {
        assert!(granted.out.contains(expected), "{}", granted.out);
    }

    let configuration = device.author.path("supervisor.toml").display().to_string();
    let address = device.supervisor.base().trim_start_matches("http://");
    let ask = replaced(&ask, "/etc/supervisor/supervisor.toml", &configuration);
    let ask = replaced(&ask, "127.0.0.1:48484", address);
    let ask = format!("cd {bin}\n{ask}");
    until_within(COMPILED_WITHIN, "the answer", || async {
        let answer = device.run(&ask).succeeds();
        if answer.out == "Hello, Ada! This is call 1.\n" {
            Ok(())
        } else {
            Err((answer.out, device.supervisor.json("/v3/plugins").await))
        }
    })
    .await;
    let time_of_owner = begin.elapsed();
    let report = device.supervisor.json("/v3/plugins").await;
    assert_eq!(report["plugins"][0]["signedBy"], "acme", "{report}");
    let times = WalkTimes {
        author: time_of_author,
        owner: time_of_owner,
    };
    (device, times)
}

/// Returns the environment of an author who has the tools of all languages and the programs of the layout, and has built
/// nothing so far: `folder` becomes the target folder of cargo and the cache of all tools.
fn empty_caches(folder: &Path) -> [(&'static str, String); 3] {
    // What the tool has installed, without the caches of Go and of the C compiler, which are in the same folder.
    let name = "supervisor-plugin";
    let installed = tests::repository().join("target/tool-cache").join(name);
    symlink(installed, folder.join(name)).unwrap();
    let programs = tests::distribution().join("bin").display().to_string();
    let path = std::env::var("PATH").unwrap();
    [
        (
            "CARGO_TARGET_DIR",
            folder.join("target").display().to_string(),
        ),
        ("XDG_CACHE_HOME", folder.display().to_string()),
        ("PATH", format!("{programs}:{path}")),
    ]
}

/// Returns how long an author may have to wait for the first answer, with everything installed and nothing built.
fn longest_wait(language: &str) -> Duration {
    // Cargo builds the dependencies too.
    let seconds = if language == "rust" { 120 } else { 60 };
    Duration::from_secs(seconds)
}

/// Prints what `cargo xtask bench first-answer` shows, and fails if an author has to wait too long.
#[tokio::test]
#[ignore = "prints times, which mean something on a machine that does nothing else"]
async fn how_long_the_way_of_the_page_takes() {
    println!("| language | until it is signed | from there to the answer | together |");
    println!("|---|---|---|---|");
    let mut too_slow = Vec::new();
    for language in ["rust", "c", "go", "javascript", "typescript", "python"] {
        if !can_build(language) {
            continue;
        }
        // The first build in a language installs its tools.
        let author = Author::with_project(language);
        author.run_in("rails", "build").succeeds();
        let caches = tempfile::tempdir().unwrap();
        let (_, times) = walk_with(language, &empty_caches(caches.path())).await;
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        let WalkTimes { author, owner } = times;
        println!(
            "| {language} | {} | {} | {} |",
            seconds(author),
            seconds(owner),
            seconds(author + owner)
        );
        let limit = longest_wait(language);
        if author + owner > limit {
            let (wait, limit) = (seconds(author + owner), seconds(limit));
            too_slow.push(format!("{language}: {wait}, more than {limit}"));
        }
    }
    assert!(too_slow.is_empty(), "{too_slow:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_of_the_page_leads_to_an_answer_in_rust() {
    walk("rust").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_of_the_page_leads_to_an_answer_in_c() {
    walk("c").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_of_the_page_leads_to_an_answer_in_go() {
    walk("go").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_of_the_page_leads_to_an_answer_in_javascript() {
    walk("javascript").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_of_the_page_leads_to_an_answer_in_typescript() {
    walk("typescript").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_of_the_page_leads_to_an_answer_in_python() {
    walk("python").await;
}

/// An example stands for the author's project, so that nothing has to be built.
#[tokio::test]
async fn a_supervisor_on_the_authors_machine_serves_the_plugin_until_it_is_interrupted() {
    let blocks = shell_blocks(section("A supervisor on your own machine"));
    let [start, install, replace] = &blocks[..] else {
        panic!("three blocks of commands: {blocks:?}");
    };
    let (run, prepare) = start.split_last().unwrap();
    assert!(run.starts_with("supervisor run "), "{run}");
    let (ask, install) = install.split_last().unwrap();
    assert!(ask.starts_with("curl "), "{ask}");

    let author = Author::new();
    fs::create_dir(author.path("rails")).unwrap();
    fs::copy(tests::guest("greeter"), author.path("rails/rails.wasm")).unwrap();
    let tools = Path::new(TOOL).parent().unwrap().display();
    let programs = tests::distribution().join("bin").display().to_string();
    let path = std::env::var("PATH").unwrap();
    let variables = [("PATH", format!("{tools}:{programs}:{path}"))];
    let port = HeldPort::new().unwrap();
    let address = port.address().to_string();
    let here = |lines: &str| replaced(lines, "127.0.0.1:48484", &address);
    author
        .shell(&here(&prepare.join("\n")), &variables)
        .succeeds();
    let mut supervisor = author.start_shell(run, &variables);
    supervisor.until_printed("the API listens on").await;

    author.shell(&install.join("\n"), &variables).succeeds();
    let ask = replaced(ask, "/v3/rails/Ada?", "/v3/greet/Ada?greeting=Salut&");
    let ask = here(&ask);
    let answers = || async {
        let answer = author.shell(&ask, &variables).succeeds();
        let greeting = "{\"greeting\":\"Salut, Ada! I am ";
        let has_greeted = answer.out.starts_with(greeting);
        has_greeted.then_some(()).ok_or(answer.out)
    };
    until("the answer", answers).await;

    let replace = replaced(&replace.join("\n"), "--project rails", "rails/rails.wasm");
    let printed = author.shell(&here(&replace), &variables).succeeds();
    assert!(printed.out.contains(": greeter "), "{}", printed.out);
    until("the answer", answers).await;
    assert!(supervisor.interrupt().await.success());
}
