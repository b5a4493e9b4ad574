//! The process that runs plugins: its remaining rights, and the effect on others if it dies or hangs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tests::{Answer, GUEST_CAPABILITIES, Supervisor, children_of, guest, guest_plugin, until};

/// The user of the process, if the supervisor is root.
const USER: &str = "1900065536";

/// A device with the component that does what its path names, as the plugins `acme` and `other`.
async fn device() -> (Supervisor, TempDir) {
    device_with("").await
}

/// The same with these lines in its policy.
async fn device_with(lines: &str) -> (Supervisor, TempDir) {
    let component = fs::read(guest("plugin_guests")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("plugins")).unwrap();
    let mut policy = lines.to_owned();
    for name in ["acme", "other"] {
        let keys = format!("name = \"{name}\"\nversion = \"1.0.0\"\n");
        let tables = format!(
            "[limits]\nwall_ms = 600000\n[[routes]]\nmethod = \"GET\"\npath = \"/v3/{name}/:what\"\n"
        );
        let file = guest_plugin(&component, &keys, &tables);
        fs::write(folder.path().join(format!("plugins/{name}.wasm")), &file).unwrap();
        policy.push_str(&format!(
            "[plugins.{name}]\nsha256 = [\"{}\"]\ngrants = {GUEST_CAPABILITIES:?}\nroutes = [\"/v3/{name}/*\"]\n\
             limits = {{ wall_ms = 600000 }}\n",
            hex::encode(Sha256::digest(&file))
        ));
    }
    fs::write(folder.path().join("policy.toml"), policy).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let device = Supervisor::on_wasm()
        .argument("--plugin-dir")
        .argument(path("plugins"))
        .argument("--policy")
        .argument(path("policy.toml"))
        .start()
        .await;
    (device, folder)
}

/// Returns the processes of this supervisor that run plugins.
fn workers(device: &Supervisor) -> Vec<i32> {
    let runs_plugins = |pid: &i32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).nth(1) == Some(b"plugins")
    };
    let children = children_of(device.pid()).into_iter();
    children.filter(runs_plugins).collect()
}

/// Returns the process, once it exists.
async fn worker(device: &Supervisor) -> i32 {
    until("the process that runs plugins is there", || async {
        match workers(device)[..] {
            [one] => Ok(one),
            ref others => Err(format!("{others:?}")),
        }
    })
    .await
}

fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Calls `acme`, and does `meanwhile` to the process that runs it; returns the answer to the call.
async fn called_while(device: &Supervisor, meanwhile: impl AsyncFnOnce()) -> Answer {
    let call = device.get("/v3/acme/sleep?ms=600000");
    let meanwhile = async {
        until("the call is under way", || async {
            let plugins = device.json("/v3/plugins").await;
            match plugins["plugins"][0]["calls"].as_u64() {
                Some(1) => Ok(()),
                _ => Err(plugins.to_string()),
            }
        })
        .await;
        meanwhile().await;
    };
    let (answer, ()) = tokio::join!(call, meanwhile);
    answer
}

/// Checks that the process is a new one, and that plugins and the API answer.
async fn goes_on(device: &Supervisor, before: i32) {
    assert_eq!(device.get("/ping").await.status, 200);
    assert_eq!(device.get("/v3/other/hello").await.text, "hello");
    assert_eq!(device.get("/v3/acme/hello").await.text, "hello");
    assert_ne!(worker(device).await, before);
}

fn assert_cut_short(answer: &Answer) {
    assert_eq!(answer.status, 502, "{answer:?}");
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert_eq!(
        message,
        "plugin `acme` was interrupted: the process that runs it ended"
    );
}

#[tokio::test]
async fn the_process_that_runs_plugins_has_no_rights() {
    let (device, _folder) = device().await;
    assert_eq!(device.get("/v3/acme/hello").await.text, "hello");
    let pid = worker(&device).await;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let fields: BTreeMap<&str, Vec<&str>> = status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, values)| (name, values.split_whitespace().collect()))
        .collect();
    assert_eq!(fields["NoNewPrivs"], ["1"]);
    assert_eq!(fields["Seccomp"], ["2"]);
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(fields[set], ["0000000000000000"], "{set}");
    }
    if rustix::process::geteuid().is_root() {
        assert_eq!(fields["CapBnd"], ["0000000000000000"]);
        assert_eq!(fields["Uid"], [USER; 4]);
        assert_eq!(fields["Gid"], [USER; 4]);
        assert_eq!(fields["Groups"], Vec::<&str>::new());
    }
    // Nothing that the supervisor has open is open in it: neither its database nor its listeners.
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open: Vec<PathBuf> = open
        .map(|entry| fs::read_link(entry.unwrap().path()).unwrap())
        .collect();
    let internet = ["tcp", "tcp6", "udp", "udp6"]
        .map(|family| fs::read_to_string(format!("/proc/{pid}/net/{family}")).unwrap_or_default());
    let mut has_page_map = false;
    for path in open {
        let path = path.to_string_lossy().into_owned();
        match path.strip_prefix("socket:[") {
            Some(inode) => {
                let inode = format!(" {} ", inode.trim_end_matches(']'));
                let is_of_internet = internet.iter().any(|table| table.contains(&inode));
                assert!(!is_of_internet, "{path}");
            }
            // Which of its own pages were written, and nothing else about them.
            None if path == format!("/proc/{pid}/pagemap") => has_page_map = true,
            // The initial memories of components, which instances have copies of.
            None => assert!(
                path.starts_with("anon_inode:")
                    || path.starts_with("/memfd:wasm-memory-image")
                    || path == "/dev/null",
                "{path}"
            ),
        }
    }
    assert!(has_page_map || !kernel_says_what_was_written());
    // Only root can create control groups.
    if rustix::process::geteuid().is_root() {
        let log = device.log();
        assert!(
            !log.contains("the process of plugins runs without restrictions"),
            "{log}"
        );
    }
}

/// Whether the kernel reports written pages: Linux does since 6.7.
fn kernel_says_what_was_written() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']);
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    (number(), number()) >= (Some(6), Some(7))
}

#[tokio::test]
async fn a_call_finds_nothing_in_its_memory_of_those_before_it() {
    let (device, _folder) = device().await;
    for round in 0..40 {
        for what in ["traces", "few-traces"] {
            for plugin in ["acme", "other"] {
                let answer = device.get(&format!("/v3/{plugin}/{what}")).await;
                assert_eq!(answer.text, "0", "{round} {plugin} {what}");
            }
        }
    }
}

/// Returns the control groups of this process, each with the file that limits the memory or the number of threads
/// there.
fn groups_of(pid: i32) -> Vec<(PathBuf, &'static str)> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let is_unified = root.join("cgroup.controllers").exists();
    let mut found = Vec::new();
    for line in groups.lines() {
        let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else {
            panic!("{groups}");
        };
        let path = path.trim_start_matches('/');
        let files: &[&str] = match controllers {
            "" if is_unified => &["memory.max", "pids.max"],
            "memory" => &["memory.limit_in_bytes"],
            "pids" => &["pids.max"],
            _ => &[],
        };
        let folder = root.join(controllers).join(path);
        found.extend(files.iter().map(|file| (folder.clone(), *file)));
    }
    found
}

/// Returns those of the process that runs plugins, if the system lets the supervisor create some.
async fn groups_of_worker(device: &Supervisor) -> Vec<(PathBuf, &'static str)> {
    // Until it has greeted, a new process is reported with the groups of its predecessor.
    until("the report to be true of the process", || async {
        let pid = worker(device).await;
        let report = device.json("/v3/plugins").await;
        let processes = report["confinement"]["processes"].as_array().unwrap();
        let process = processes.iter().find(|one| one["process"] == "plugins");
        let in_force = process.unwrap()["inForce"].to_string();
        let is_ours = |(folder, _): &(PathBuf, _)| {
            let parent = folder.parent().and_then(Path::file_name);
            parent.is_some_and(|name| name == "platform-plugins")
        };
        let groups: Vec<_> = groups_of(pid).into_iter().filter(is_ours).collect();
        let has = |file: &str| groups.iter().any(|(_, name)| name.starts_with(file));
        let is_true = in_force.contains("memory") == has("memory.")
            && in_force.contains("processes") == has("pids.");
        if is_true {
            Ok(groups)
        } else {
            Err(format!("{report}\n{groups:?}\n{}", device.log()))
        }
    })
    .await
}

#[tokio::test]
async fn the_process_that_runs_plugins_is_in_control_groups_which_end_with_it() {
    let (mut device, _folder) = device().await;
    let groups = groups_of_worker(&device).await;
    let board = fs::read_to_string("/proc/meminfo").unwrap();
    let board: u64 = board.split_whitespace().nth(1).unwrap().parse().unwrap();
    let board = (board << 10).max(1 << 30);
    for (folder, file) in &groups {
        let bound = fs::read_to_string(folder.join(file)).unwrap();
        let bound: u64 = bound.trim().parse().unwrap();
        match *file {
            "pids.max" => assert_eq!(bound, 128),
            // An eighth of the board for all instances, at least 64 MiB, and the same again for the rest of the
            // process.
            _ => assert!(
                (128 << 20..board / 4).contains(&bound),
                "{bound} of {board}"
            ),
        }
    }
    // The next process has other groups.
    let before = worker(&device).await;
    signal(before, Signal::KILL);
    assert_are_gone(&groups).await;
    until("another process is there", || async {
        match worker(&device).await {
            pid if pid == before => Err(pid),
            _ => Ok(()),
        }
    })
    .await;
    // A supervisor that is killed leaves them for the next one to remove.
    let groups = groups_of_worker(&device).await;
    device.kill().await;
    device.start_again().await;
    assert_are_gone(&groups).await;
    let groups = groups_of_worker(&device).await;
    device.terminate().await;
    assert_are_gone(&groups).await;
}

/// Within a control group, a niceness has no effect on the supervisor, which is in another.
#[tokio::test]
async fn plugins_leave_the_processor_to_the_supervisor() {
    let (device, _folder) = device().await;
    for (folder, _) in groups_of_worker(&device).await {
        let weight = folder.parent().unwrap().join("cpu.weight");
        // In version 1, and without that controller, the process is in no other group for the processor.
        if let Ok(weight) = fs::read_to_string(&weight) {
            assert_eq!(weight.trim(), "33", "{folder:?}");
        }
    }
}

#[tokio::test]
async fn memory_of_plugins_that_the_policy_changes_also_changes_their_control_group() {
    let (device, folder) = device_with("[bounds]\nmemory_mib = 300\n").await;
    let are_limited_to = async |mebibytes: u64| {
        until("the control groups to have the policy's limit", || async {
            let groups = groups_of_worker(&device).await;
            let limits = groups
                .iter()
                .filter(|(_, file)| file.starts_with("memory."));
            let limits: Vec<u64> = limits
                .filter_map(|(folder, file)| fs::read_to_string(folder.join(file)).ok())
                .filter_map(|limit| limit.trim().parse().ok())
                .collect();
            // 64 MiB are for the process itself.
            if limits.iter().all(|limit| *limit == (mebibytes + 64) << 20) {
                Ok(())
            } else {
                Err(format!("{limits:?}\n{}", device.log()))
            }
        })
        .await;
    };
    are_limited_to(300).await;
    let policy = folder.path().join("policy.toml");
    for mebibytes in [500, 200] {
        let text = fs::read_to_string(&policy).unwrap();
        let rest = text.split_once("[plugins.").unwrap().1;
        let text = format!("[bounds]\nmemory_mib = {mebibytes}\n[plugins.{rest}");
        fs::write(&policy, text).unwrap();
        are_limited_to(mebibytes).await;
    }
    // So does the group of the next process.
    let before = worker(&device).await;
    signal(before, Signal::KILL);
    until("another process is there", || async {
        match worker(&device).await {
            pid if pid == before => Err(pid),
            _ => Ok(()),
        }
    })
    .await;
    are_limited_to(200).await;
}

async fn assert_are_gone(groups: &[(PathBuf, &str)]) {
    until("the control groups are gone", || async {
        match groups.iter().find(|(folder, _)| folder.exists()) {
            Some((folder, _)) => Err(folder.display().to_string()),
            None => Ok(()),
        }
    })
    .await;
}

#[tokio::test]
async fn a_process_of_plugins_that_takes_more_memory_than_its_share_is_started_again() {
    let (device, _folder) = device().await;
    assert_eq!(device.get("/v3/acme/hello").await.text, "hello");
    let before = worker(&device).await;
    let groups = groups_of_worker(&device).await;
    let Some((folder, file)) = groups.iter().find(|(_, file)| file.starts_with("memory.")) else {
        // There are none here, as its walls report.
        return;
    };
    // A hole in the sandbox could let it use memory beyond the limits of instances; here the limit is lowered instead.
    let usage = ["memory.current", "memory.usage_in_bytes"]
        .iter()
        .find_map(|file| fs::read_to_string(folder.join(file)).ok())
        .unwrap();
    let usage: u64 = usage.trim().parse().unwrap();
    fs::write(folder.join(file), (usage + (4 << 20)).to_string()).unwrap();
    assert_cut_short(&device.get("/v3/acme/memory").await);
    goes_on(&device, before).await;
    let log = device.log();
    assert!(
        log.contains("the kernel killed it, because it used more than its "),
        "{log}"
    );
}

#[tokio::test]
async fn native_code_of_plugins_is_mapped_from_the_files_of_the_cache() {
    let (device, _folder) = device().await;
    assert_eq!(device.get("/v3/acme/hello").await.text, "hello");
    let pid = worker(&device).await;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    // Rights are the second field, a path the sixth.
    let executable: Vec<&str> = maps
        .lines()
        .filter(|line| line.split_whitespace().nth(1).unwrap().contains('x'))
        .collect();
    let is_compiled = |line: &&&str| line.ends_with(".cwasm");
    // Two plugins from one component have the same code.
    assert!(executable.iter().filter(is_compiled).count() >= 1, "{maps}");
    for line in &executable {
        assert!(line.split_whitespace().nth(5).is_some(), "{line}\n{maps}");
        assert!(
            !line.split_whitespace().nth(1).unwrap().contains('w'),
            "{line}"
        );
    }
    // The mapping is private to this process and not writable: nor is the file, which is root's.
    for line in maps.lines().filter(|line| line.ends_with(".cwasm")) {
        let rights = line.split_whitespace().nth(1).unwrap();
        assert!(rights.ends_with('p') && !rights.contains('w'), "{line}");
    }
}

#[tokio::test]
async fn a_process_of_plugins_that_dies_is_started_again_and_its_calls_are_502s_that_name_the_plugin()
 {
    let (device, _folder) = device().await;
    let before = worker(&device).await;
    let answer = called_while(&device, async || signal(before, Signal::KILL)).await;
    assert_cut_short(&answer);
    goes_on(&device, before).await;
    // Whoever killed it, the plugin does not count as faulty.
    let plugins = device.json("/v3/plugins").await;
    assert_eq!(plugins["plugins"][0]["failures"], 0);
}

#[tokio::test]
async fn a_process_of_plugins_that_hangs_is_started_again() {
    let (device, _folder) = device().await;
    let before = worker(&device).await;
    let answer = called_while(&device, async || {
        signal(before, Signal::STOP);
        assert_eq!(device.get("/ping").await.status, 200);
    })
    .await;
    assert_cut_short(&answer);
    goes_on(&device, before).await;
}

#[tokio::test]
async fn the_process_that_runs_plugins_ends_with_its_supervisor() {
    let (mut device, _folder) = device().await;
    let pid = worker(&device).await;
    device.kill().await;
    until("the process is gone", || async {
        if is_alive(pid) {
            Err(pid.to_string())
        } else {
            Ok(())
        }
    })
    .await;
}
