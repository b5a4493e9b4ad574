//! The user and groups of a process.

use std::fs;

use rustix::fs::{Gid, Uid};
use rustix::io::Result;
use rustix::process::{geteuid, getuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// A user and its groups, by number: they need no names on the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub uid: u32,
    /// The group that new files belong to.
    pub gid: u32,
    /// All other groups.
    pub groups: Vec<u32>,
}

impl Identity {
    /// Creates a user with this number, in the group with that number and in no other.
    #[must_use]
    pub fn new(uid: u32, gid: u32) -> Self {
        Identity {
            uid,
            gid,
            groups: Vec::new(),
        }
    }

    pub(crate) fn become_it(&self) -> Result<()> {
        let (user, group) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        // Groups first: without the original user's rights they could no longer be changed.
        set_thread_groups(&groups)?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)
    }
}

/// Checks, for a process that keeps its user, that this is an ordinary user.
pub(crate) fn is_nobody_special() -> std::result::Result<(), String> {
    if getuid().is_root() || geteuid().is_root() {
        return Err("the process stays root".to_owned());
    }
    Ok(())
}

/// Checks that this process may make others become users with all of these numbers.
///
/// # Errors
/// The reason why not: it is not root, or its user namespace (for example that of a container) has
/// no such users.
pub fn can_become(first: u32, count: u32) -> std::result::Result<(), String> {
    if !geteuid().is_root() {
        return Err("the supervisor does not run as root".to_owned());
    }
    for map in ["/proc/self/uid_map", "/proc/self/gid_map"] {
        let text =
            fs::read_to_string(map).map_err(|error| format!("failed to read `{map}`: {error}"))?;
        if !is_mapped(&text, first, count) {
            return Err(format!(
                "the numbers {first} to {} are not users in this namespace (`{map}`)",
                first.saturating_add(count.saturating_sub(1))
            ));
        }
    }
    Ok(())
}

/// Checks lines of three numbers: first inside, first outside, count (user_namespaces(7)).
fn is_mapped(map: &str, first: u32, count: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(inside)), Some(Ok(_)), Some(Ok(length))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        let (first, count) = (u64::from(first), u64::from(count));
        first >= inside && first + count <= inside.saturating_add(length)
    })
}

#[cfg(test)]
mod tests {
    use super::is_mapped;

    #[test]
    fn a_range_of_users_is_mapped_where_one_line_holds_all_of_it() {
        let whole = "         0          0 4294967295\n";
        let container = "0 100000 65536\n";
        assert!(is_mapped(whole, 1_900_000_000, 65_536));
        assert!(is_mapped(container, 60_000, 5_536));
        assert!(!is_mapped(container, 60_000, 5_537));
        assert!(!is_mapped(container, 1_900_000_000, 65_536));
        assert!(!is_mapped("", 0, 1));
        assert!(!is_mapped("x y z", 0, 1));
    }
}
