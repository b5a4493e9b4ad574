//! A virtual machine with Debian's kernel and mocks of hardware, for tests of hardware that no machine has.
//!
//! A test program runs again in it, with those of its tests that are ignored outside: the test that starts the machine
//! reads their results from its console. The kernel comes from `cargo xtask test`; without it, or without qemu, the
//! tests are skipped.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use crate::until::DEADLINE;

/// The variable that names the folder with the kernel (`vmlinuz`) and its modules.
const KERNEL: &str = "SUPERVISOR_TEST_KERNEL";
/// The machine's memory, in megabytes.
const MEMORY: &str = "512";
/// Modules with their parameters, each after the ones that it needs.
const MODULES: [&str; 4] = [
    "configfs.ko",
    "gpio-sim.ko",
    "i2c-dev.ko",
    "i2c-stub.ko chip_addr=0x48,0x49",
];

/// The parts of a machine.
pub struct VirtualMachine {
    kernel: PathBuf,
}

impl VirtualMachine {
    /// Finds the parts; returns `None`, and prints a line about it, if this machine has no kernel for it or no qemu.
    #[must_use]
    pub fn find() -> Option<Self> {
        let kernel = std::env::var_os(KERNEL).map(PathBuf::from);
        let qemu = Command::new(QEMU)
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        match kernel {
            Some(kernel) if qemu.is_ok() => Some(VirtualMachine { kernel }),
            Some(_) => {
                println!("SKIPPED: {QEMU} is not installed");
                None
            }
            None => {
                println!("SKIPPED: `cargo xtask test` makes the kernel for it, and sets {KERNEL}");
                None
            }
        }
    }

    /// Runs the ignored tests of this program whose names begin with `tests`, one after the other. Apart from the shell
    /// there is no other process in the machine.
    ///
    /// # Panics
    /// When they do not all pass, there are none, or the machine does not end in time; the message contains its
    /// console.
    pub async fn run_ignored_tests(&self, tests: &str) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let files = self.files(&folder.path().join("root"), tests);
        let disk = files.and_then(|root| archive(&root, &folder.path().join("disk")));
        let disk = disk.expect("the machine's files");
        let console = self.boot(&disk).await;
        let passed = console.lines().find_map(|line| {
            let (_, rest) = line.split_once("test result: ok. ")?;
            rest.split(' ').next()?.parse::<usize>().ok()
        });
        assert!(passed.is_some_and(|passed| passed > 0), "{console}");
        println!("{console}");
    }

    /// Creates the machine's root folder.
    fn files(&self, root: &Path, tests: &str) -> io::Result<PathBuf> {
        for folder in ["bin", "modules", "tmp"] {
            fs::create_dir_all(root.join(folder))?;
        }
        fs::copy("/bin/busybox", root.join("bin/busybox"))?;
        for module in MODULES {
            let name = module.split(' ').next().unwrap_or(module);
            fs::copy(self.kernel.join(name), root.join("modules").join(name))?;
        }
        let program = std::env::current_exe()?;
        for library in libraries(&program)? {
            let copy = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(copy.parent().unwrap_or(root))?;
            fs::copy(&library, copy)?;
        }
        // Debug information is most of the file.
        let copy = root.join("tests");
        let strip = Command::new("strip")
            .args(["-s", "-o"])
            .args([&copy, &program])
            .status();
        if !strip.is_ok_and(|status| status.success()) {
            fs::copy(&program, copy)?;
        }
        let init = root.join("init");
        fs::write(&init, script(tests))?;
        fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
        Ok(root.to_owned())
    }

    /// Returns the machine's console output until it ends.
    async fn boot(&self, disk: &Path) -> String {
        let mut machine = tokio::process::Command::new(QEMU)
            .args(["-M", "q35", "-cpu", "max", "-smp", "2", "-m", MEMORY])
            .args(["-nodefaults", "-nographic", "-no-reboot"])
            .args(["-serial", "stdio"])
            .arg("-kernel")
            .arg(self.kernel.join("vmlinuz"))
            .arg("-initrd")
            .arg(disk)
            .args(["-append", "console=ttyS0 quiet panic=-1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("qemu");
        let mut output = machine.stdout.take().expect("its console");
        let mut console = Vec::new();
        let reading = output.read_to_end(&mut console);
        let has_ended = timeout(DEADLINE, reading).await.is_ok();
        let console = String::from_utf8_lossy(&console).into_owned();
        assert!(has_ended, "the machine did not end in time:\n{console}");
        console
    }
}

const QEMU: &str = "qemu-system-x86_64";

/// Returns the first program of the machine.
fn script(tests: &str) -> String {
    let modules: Vec<String> = MODULES
        .iter()
        .map(|module| format!("$b insmod /modules/{module}\n"))
        .collect();
    format!(
        "#!/bin/busybox sh\n\
         b=/bin/busybox\n\
         $b mkdir -p /proc /sys /dev\n\
         $b mount -t proc proc /proc\n\
         $b mount -t sysfs sysfs /sys\n\
         $b mount -t devtmpfs dev /dev\n\
         {}\
         $b mount -t configfs configfs /sys/kernel/config\n\
         RUST_BACKTRACE=0 /tests --ignored --test-threads=1 {tests}\n\
         $b poweroff -f\n",
        modules.concat()
    )
}

/// Returns the libraries that a program is linked with, and the program that loads them.
fn libraries(program: &Path) -> io::Result<BTreeSet<String>> {
    let output = Command::new("ldd").arg(program).output()?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths = lines
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    Ok(paths.map(str::to_owned).collect())
}

/// Creates an archive of the folder in the format that the kernel unpacks.
fn archive(folder: &Path, archive: &Path) -> io::Result<PathBuf> {
    let pack = "/bin/busybox find . | /bin/busybox cpio -o -H newc";
    let status = Command::new("/bin/busybox")
        .args(["sh", "-c", pack])
        .current_dir(folder)
        .stdout(fs::File::create(archive)?)
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("busybox cpio: {status}")));
    }
    Ok(archive.to_owned())
}
