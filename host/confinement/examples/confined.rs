//! Confines itself and then makes attempts, as its arguments say, for the tests of this crate.
//!
//! `confined FOLDER UID WALLS WHAT...` writes the report as JSON and then, for each WHAT, its name and `done` or the
//! error. UID 0 keeps the user. FOLDER is the folder that it may write to. WALLS are the optional ones, separated by
//! commas: `bounds`, `files`, `system-calls`; and `page-map`, which allows queries about its pages.

use std::fs;
use std::io::{self, Read as _};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use confinement::{Bound, Bounds, Confinement, FileAccess, Identity, Sockets, SystemCalls, Wall};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Pid, Signal};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(uid), Some(walls)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("usage: confined FOLDER UID WALLS WHAT...");
        return ExitCode::from(2);
    };
    let has = |wall: Wall| walls.split(',').any(|name| name == <&str>::from(wall));
    let uid: u32 = uid.parse().unwrap_or(0);
    let confinement = Confinement {
        bounds: Bounds {
            limits: if has(Wall::Bounds) {
                vec![Bound::CoreDump(0), Bound::Descriptors(64)]
            } else {
                Vec::new()
            },
            niceness: Some(5),
            oom_score: Some(300),
            ends_with_parent: false,
        },
        identity: (uid != 0).then(|| Identity::new(uid, uid)),
        files: has(Wall::Files).then(|| FileAccess {
            read: vec![PathBuf::from("/etc/hostname"), PathBuf::from("/proc")],
            write: vec![PathBuf::from(&folder)],
        }),
        system_calls: has(Wall::SystemCalls).then_some(SystemCalls {
            threads: true,
            files: true,
            page_map: walls.split(',').any(|name| name == "page-map"),
            sockets: Sockets::Internet,
        }),
    };
    let own_pages = || fs::File::open("/proc/self/pagemap");
    let page_maps = PageMaps {
        as_root: own_pages(),
        without_capabilities: confinement::without_capabilities(own_pages)
            .unwrap_or_else(|error| Err(error.into())),
    };
    match confinement.apply() {
        Ok(report) => println!("{}", serde_json::to_string(&report).unwrap_or_default()),
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    }
    for what in arguments {
        match attempt(&what, Path::new(&folder), &page_maps) {
            Ok(()) => println!("{what} done"),
            Err(error) => println!("{what} {error}"),
        }
    }
    ExitCode::SUCCESS
}

/// The file of this process's pages, opened before it was confined.
struct PageMaps {
    as_root: io::Result<fs::File>,
    without_capabilities: io::Result<fs::File>,
}

fn attempt(what: &str, folder: &Path, page_maps: &PageMaps) -> io::Result<()> {
    let parent = || Pid::from_raw(rustix::process::getppid().map_or(1, Pid::as_raw_pid));
    match what {
        "read-shadow" => fs::read("/etc/shadow").map(drop),
        "read-passwd" => fs::read("/etc/passwd").map(drop),
        "read-hostname" => fs::read("/etc/hostname").map(drop),
        "read-status" => fs::read("/proc/self/status").map(drop),
        "write-outside" => fs::write(folder.with_file_name("outside"), "x"),
        "write-inside" => {
            fs::create_dir_all(folder.join("a"))?;
            fs::create_dir_all(folder.join("b"))?;
            fs::write(folder.join("a/file"), "x")?;
            fs::rename(folder.join("a/file"), folder.join("b/file"))?;
            fs::remove_file(folder.join("b/file"))
        }
        "netlink" => {
            Ok(rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None).map(drop)?)
        }
        "unix" => Ok(rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).map(drop)?),
        "packet" => {
            Ok(rustix::net::socket(AddressFamily::PACKET, SocketType::RAW, None).map(drop)?)
        }
        "udp" => UdpSocket::bind("127.0.0.1:0").map(drop),
        "thread" => std::thread::Builder::new()
            .spawn(|| {})?
            .join()
            .map_err(|_| io::Error::other("panicked")),
        "execve" => Command::new("/bin/true").status().map(drop),
        "mount" => mount(folder),
        "ptrace" => ptrace(libc::PTRACE_SEIZE, parent().map_or(1, Pid::as_raw_pid)),
        "be-traced" => ptrace(libc::PTRACE_TRACEME, 0),
        "namespace" => namespace(),
        "chown" => std::os::unix::fs::chown(folder, Some(1), Some(1)),
        "become-root" => Ok(rustix::thread::set_thread_uid(rustix::fs::Uid::ROOT)?),
        "kill-parent" => match parent() {
            Some(parent) => Ok(rustix::process::kill_process(parent, Signal::WINCH)?),
            None => Err(io::Error::other("no parent")),
        },
        "read-memory-of-parent" => {
            let parent = parent().map_or(1, Pid::as_raw_pid);
            let mut byte = [0];
            fs::File::open(format!("/proc/{parent}/environ"))?.read_exact(&mut byte)
        }
        "more-descriptors" => {
            let mut open = Vec::new();
            for _ in 0..100 {
                open.push(fs::File::open("/proc/self/status")?);
            }
            Ok(())
        }
        "find-pages-as-root" => find_page(&page_maps.as_root),
        "find-pages" => find_page(&page_maps.without_capabilities),
        "scan-pages" => scan_pages(&page_maps.without_capabilities),
        other => Err(io::Error::other(format!("unknown attempt `{other}`"))),
    }
}

/// Finds the place of a page of this process in the machine's memory.
fn find_page(pages: &io::Result<fs::File>) -> io::Result<()> {
    let pages = pages.as_ref().map_err(|error| error.kind())?;
    let here = [1_u8; 8];
    let number = std::ptr::from_ref(&here).addr() / rustix::param::page_size();
    let mut entry = [0; 8];
    pages.read_exact_at(&mut entry, 8 * number as u64)?;
    // The lowest 55 bits, according to the kernel's documentation (pagemap).
    match u64::from_ne_bytes(entry) & ((1 << 55) - 1) {
        0 => Err(io::Error::other("it is not said where the page is")),
        _ => Ok(()),
    }
}

#[expect(unsafe_code, reason = "nothing among our dependencies wraps it")]
fn scan_pages(pages: &io::Result<fs::File>) -> io::Result<()> {
    let pages = pages.as_ref().map_err(|error| error.kind())?;
    // With size zero, so the kernel refuses it, unless the call was refused before.
    let arguments = [0_u64; 12];
    // SAFETY: the call reads and writes only its 96 bytes, which live until it returns.
    let result = unsafe { libc::ioctl(pages.as_raw_fd(), 0xc060_6610, &raw const arguments) };
    match outcome(i64::from(result)) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        other => other,
    }
}

#[expect(unsafe_code, reason = "nothing among our dependencies wraps it")]
fn mount(folder: &Path) -> io::Result<()> {
    let target = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    let (source, kind) = (c"none".as_ptr(), c"tmpfs".as_ptr());
    // SAFETY: the three strings end with NUL and live until the call returns; there is no data.
    let result = unsafe { libc::mount(source, target.as_ptr(), kind, 0, std::ptr::null()) };
    outcome(i64::from(result))
}

#[expect(unsafe_code, reason = "nothing among our dependencies wraps it")]
fn ptrace(request: libc::c_uint, pid: i32) -> io::Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: these requests take no memory of this process.
    let result = unsafe { libc::ptrace(request, pid, none, none) };
    outcome(result)
}

#[expect(unsafe_code, reason = "nothing among our dependencies wraps it safely")]
fn namespace() -> io::Result<()> {
    // SAFETY: a user namespace shares no descriptors or memory with other processes.
    let result = unsafe { libc::unshare(libc::CLONE_NEWUSER) };
    outcome(i64::from(result))
}

fn outcome(result: i64) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
