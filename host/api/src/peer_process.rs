//! Identifies the process of this host at the other end of a connection, and decides whether it may do without a key.
//!
//! A loopback address identifies nobody: each user of the host, each page in a browser on it, and each container that
//! shares the host's network connects from there. The kernel shows who owns a socket (`/proc/net/tcp`) and who has it
//! open (`/proc/PID/fd`); processes in containers are recognized by their namespaces and their root folder, WebAssembly
//! services by their command.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Why a process may not do without a key, or cannot be identified.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
    #[error("failed to read `{path}`")]
    Read {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("no process that the supervisor may inspect has the connection open")]
    Unknown,
    #[error("process {0} is a service")]
    Service(u32),
    #[error("process {0} is in a container, or the supervisor is")]
    Contained(u32),
    #[error("process {0} belongs neither to root nor to the supervisor's user or group")]
    Untrusted(u32),
}

/// Checks that all processes that have the other end of a connection open may do without a key. `peer` and `local` are
/// its addresses as the supervisor sees them. Blocks while it searches the host's processes.
///
/// # Errors
/// If one of them may not, or none is found.
pub(crate) fn is_trusted(peer: SocketAddr, local: SocketAddr) -> Result<(), PeerError> {
    let inode = socket_of(peer, local)?.ok_or(PeerError::Unknown)?;
    let holders = holders_of(inode)?;
    if holders.is_empty() {
        return Err(PeerError::Unknown);
    }
    holders.into_iter().try_for_each(process_is_trusted)
}

/// Returns the inode of the socket that has `peer` as its own address and `local` as the other.
fn socket_of(peer: SocketAddr, local: SocketAddr) -> Result<Option<u64>, PeerError> {
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let table = match fs::read_to_string(path) {
            Ok(table) => table,
            // A host without IPv6 has only the first file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(source) => return Err(read_error(path, source)),
        };
        if let Some(inode) = inode_in(&table, peer, local) {
            return Ok(Some(inode));
        }
    }
    Ok(None)
}

/// Like [`socket_of`], in one table of the kernel (proc(5)). A socket that its process has closed has no inode.
fn inode_in(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let own = address(words.next()?)?;
        let other = address(words.next()?)?;
        if own != canonical(peer) || other != canonical(local) {
            return None;
        }
        let inode = words.nth(6)?.parse().ok()?;
        (inode != 0).then_some(inode)
    })
}

/// Parses an address in the kernel's form: words of 32 bits in the machine's byte order, in hexadecimal digits.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| -> Option<[u8; 4]> {
        let digits = ip.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip: IpAddr = match ip.len() {
        8 => word(0)?.into(),
        32 => {
            let mut bytes = [0; 16];
            for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at)?);
            }
            bytes.into()
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

/// Returns an IPv4 address in its own form, even for a socket for both versions of IP.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns the processes that have a socket open, as far as this process may see them.
fn holders_of(inode: u64) -> Result<Vec<u32>, PeerError> {
    let target = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").map_err(|source| read_error("/proc", source))?;
    let has_it = |pid: &u32| {
        // It belongs to another user, or is gone.
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        files.flatten().any(|file| {
            fs::read_link(file.path())
                .is_ok_and(|to| to.as_os_str().as_bytes() == target.as_bytes())
        })
    };
    let pids = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids.filter(has_it).collect())
}

fn process_is_trusted(pid: u32) -> Result<(), PeerError> {
    let folder = format!("/proc/{pid}");
    let folder = Path::new(&folder);
    if is_service(&read(&folder.join("cmdline"))?) {
        return Err(PeerError::Service(pid));
    }
    let own = Path::new("/proc/self");
    for namespace in ["ns/pid", "ns/user"] {
        if link(&folder.join(namespace))? != link(&own.join(namespace))? {
            return Err(PeerError::Contained(pid));
        }
    }
    // A container can share all of the host's namespaces but this: it has files of its own.
    if root_of(folder)? != root_of(own)? {
        return Err(PeerError::Contained(pid));
    }
    let status = read(&folder.join("status"))?;
    let own = Ids {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
    };
    if own.cover(&String::from_utf8_lossy(&status)) {
        Ok(())
    } else {
        Err(PeerError::Untrusted(pid))
    }
}

/// Returns whether a command is that of a WebAssembly service: `supervisor-wasm wasm-service …`. Whether or not such a
/// process runs as root, its guest decides what it does.
fn is_service(command: &[u8]) -> bool {
    command.split(|byte| *byte == 0).nth(1) == Some(b"wasm-service")
}

/// The user and group of this process.
struct Ids {
    user: u32,
    group: u32,
}

impl Ids {
    /// Returns whether a process with this `/proc/PID/status` belongs to root, to the same user, or to the same group.
    fn cover(&self, status: &str) -> bool {
        let numbers = |name: &str| -> Vec<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let words = line.unwrap_or_default().split_ascii_whitespace();
            words.filter_map(|word| word.parse().ok()).collect()
        };
        // Real and effective: a program that changes its user acts on behalf of another.
        let users = numbers("Uid:");
        let is_of = |user: u32| users.len() == 4 && users.iter().take(2).all(|id| *id == user);
        let group = numbers("Gid:").get(1) == Some(&self.group);
        is_of(0) || is_of(self.user) || group || numbers("Groups:").contains(&self.group)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, PeerError> {
    fs::read(path).map_err(|source| read_error(&path.display().to_string(), source))
}

fn link(path: &Path) -> Result<std::path::PathBuf, PeerError> {
    fs::read_link(path).map_err(|source| read_error(&path.display().to_string(), source))
}

/// Returns the device and the inode of a process's root folder.
fn root_of(process: &Path) -> Result<(u64, u64), PeerError> {
    let path = process.join("root");
    let root =
        fs::metadata(&path).map_err(|source| read_error(&path.display().to_string(), source))?;
    Ok((root.dev(), root.ino()))
}

fn read_error(path: &str, source: std::io::Error) -> PeerError {
    PeerError::Read {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_of_this_process_is_found_and_trusted() {
        for bound in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            // A host without IPv6.
            let Ok(listener) = TcpListener::bind(bound) else {
                continue;
            };
            let mut to = listener.local_addr().unwrap();
            if to.ip().is_unspecified() {
                to.set_ip([127, 0, 0, 1].into());
            }
            let client = TcpStream::connect(to).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let local = server.local_addr().unwrap();
            let inode = socket_of(peer, local).unwrap().unwrap();
            assert_eq!(holders_of(inode).unwrap(), [std::process::id()], "{bound}");
            is_trusted(peer, local).unwrap();
            drop(client);
            let gone = is_trusted(peer, local);
            assert!(matches!(gone, Err(PeerError::Unknown)), "{gone:?}");
        }
    }

    #[test]
    fn a_process_with_another_root_folder_is_in_a_container() {
        let busybox = Path::new("/bin/busybox");
        if !rustix::process::geteuid().is_root() || !busybox.is_file() {
            println!(
                "SKIPPED: only root can give a process another root folder, and busybox runs in it"
            );
            return;
        }
        let root = tempfile::tempdir().unwrap();
        fs::copy(busybox, root.path().join("busybox")).unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let mut command = std::process::Command::new(program);
            command.args(arguments).args(["sleep", "1000"]);
            command.spawn().unwrap()
        };
        let folder = root.path().to_str().unwrap();
        let mut contained = run("chroot", &[folder, "/busybox"]);
        let mut outside = run("env", &[]);
        // `chroot` replaces itself; until then, the process has the host's root folder.
        let deadline = std::time::Instant::now() + crate::tests::DEADLINE;
        let arguments = || fs::read(format!("/proc/{}/cmdline", contained.id())).unwrap();
        while !arguments().starts_with(b"/busybox") {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        let inside = process_is_trusted(contained.id());
        let host = process_is_trusted(outside.id());
        for child in [&mut contained, &mut outside] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(matches!(inside, Err(PeerError::Contained(_))), "{inside:?}");
        host.unwrap();
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let table = |lines: &str| {
            format!(
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n{lines}"
            )
        };
        let v4 = |a: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(a));
        let line = format!(
            "   0: {}:0050 {}:BD64 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000\n",
            v4([127, 0, 0, 1]),
            v4([127, 0, 0, 2])
        );
        let peer = "127.0.0.1:80".parse().unwrap();
        let local = "127.0.0.2:48484".parse().unwrap();
        assert_eq!(inode_in(&table(&line), peer, local), Some(4711));
        assert_eq!(inode_in(&table(&line), local, peer), None);
        let closed = line.replace(" 4711 ", " 0 ");
        assert_eq!(inode_in(&table(&closed), peer, local), None);
        for garbage in [
            "",
            "x",
            "0: :",
            "0: 0100007F 0100007F",
            "0: é:0 1:1",
            "0: 0100007F:0050",
        ] {
            assert_eq!(inode_in(&table(garbage), peer, local), None);
        }
    }

    #[test]
    fn root_the_supervisors_user_and_its_group_are_trusted() {
        let own = Ids { user: 5, group: 50 };
        for (users, group, groups, is_trusted) in [
            ("0 0 0 0", "0 0 0 0", "", true),
            ("5 5 5 5", "7 7 7 7", "", true),
            ("9 9 9 9", "50 50 50 50", "", true),
            ("9 9 9 9", "7 7 7 7", "7 50", true),
            ("9 9 9 9", "7 7 7 7", "7 500", false),
            // A program that changed its user.
            ("9 0 0 0", "7 7 7 7", "", false),
            ("0 9 0 0", "7 7 7 7", "", false),
            ("", "", "", false),
        ] {
            let status = format!("Name:\tx\nUid:\t{users}\nGid:\t{group}\nGroups:\t{groups}\n");
            assert_eq!(own.cover(&status), is_trusted, "{status}");
        }
    }

    #[test]
    fn a_webassembly_service_is_recognized_by_its_command() {
        assert!(is_service(
            b"/usr/lib/supervisor/bin/supervisor-wasm\0wasm-service\0--record\0x\0"
        ));
        assert!(!is_service(
            b"/usr/bin/curl\0http://127.0.0.1\0wasm-service\0"
        ));
        assert!(!is_service(b""));
    }
}
