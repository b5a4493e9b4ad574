//! Turns lists into a filter for the kernel.

mod lists;

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};

use super::{Sockets, SystemCalls};

/// The kind of a socket, without its flags (`SOCK_CLOEXEC`, `SOCK_NONBLOCK`).
const SOCKET_KIND: u64 = 0xf;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs the filters for this thread, which is the only one of the process.
pub(super) fn install(calls: SystemCalls) -> Result<(), String> {
    put_on(calls).map_err(|error| format!("seccomp failed: {error}"))
}

fn put_on(calls: SystemCalls) -> Result<(), Error> {
    let mut rules = allowed(calls)?;
    if calls.threads {
        // The C library tries `clone3` first, whose flags are in memory that filters cannot read, and uses
        // `clone` if there is no `clone3`. If two filters apply, the stricter one decides.
        rules.insert(libc::SYS_clone3, Vec::new());
        let clone3 = Rules::from([(libc::SYS_clone3, Vec::new())]);
        let missing = SeccompAction::Errno(libc::ENOSYS as u32);
        apply_filter(&compile(clone3, SeccompAction::Allow, missing)?)?;
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    apply_filter(&compile(rules, refused, SeccompAction::Allow)?)
}

fn compile(
    rules: Rules,
    otherwise: SeccompAction,
    action: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, otherwise, action, architecture)?.try_into()
}

fn allowed(calls: SystemCalls) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    let mut allow = |numbers: &[i64]| {
        for number in numbers {
            rules.insert(*number, Vec::new());
        }
    };
    allow(lists::COMPUTATION);
    if calls.files {
        allow(lists::FILES);
    }
    // Only its own threads: any other process has another number.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![when(0, SeccompCmpOp::Eq, own)?]);
    // Limits can be read but not set.
    let no_new_limit = rule(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![no_new_limit]);
    let mut prctl = Vec::new();
    for operation in [libc::PR_SET_NAME, libc::PR_GET_NAME, lists::PR_SET_VMA] {
        prctl.push(when(0, SeccompCmpOp::Eq, operation as u64)?);
    }
    rules.insert(libc::SYS_prctl, prctl);
    let mut ioctl = Vec::new();
    let page_map = calls.page_map.then_some(lists::PAGEMAP_SCAN);
    let operations = [libc::FIONBIO, libc::FIONREAD, libc::FIOCLEX, libc::TCGETS];
    for operation in operations.map(u64::from).into_iter().chain(page_map) {
        ioctl.push(when(1, SeccompCmpOp::Eq, operation)?);
    }
    rules.insert(libc::SYS_ioctl, ioctl);
    if calls.threads {
        let flag = libc::CLONE_THREAD as u64;
        let is_thread = SeccompCmpOp::MaskedEq(flag);
        let thread = rule(0, SeccompCmpArgLen::Qword, is_thread, flag)?;
        rules.insert(libc::SYS_clone, vec![thread]);
    }
    if calls.sockets == Sockets::Internet {
        let mut socket = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
                socket.push(SeccompRule::new(vec![
                    condition(0, SeccompCmpOp::Eq, family as u64)?,
                    condition(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind as u64)?,
                ])?);
            }
        }
        rules.insert(libc::SYS_socket, socket);
    }
    Ok(rules)
}

fn when(argument: u8, comparison: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    rule(argument, SeccompCmpArgLen::Dword, comparison, value)
}

fn rule(
    argument: u8,
    length: SeccompCmpArgLen,
    comparison: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(
        argument, length, comparison, value,
    )?])
}

fn condition(
    argument: u8,
    comparison: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)
}
