"""Runs a program with the filters of system calls that systemd derives from a unit, on a machine without systemd.

Usage: unit_filter.py CALLS FAMILIES PROGRAM [ARGUMENT ...]

CALLS and FAMILIES name files with a system call or an address family a line: those that remain. The filters are those of
`SystemCallFilter=` with EPERM, `SystemCallArchitectures=native`, `RestrictNamespaces=yes`, `RestrictAddressFamilies=`,
`LockPersonality=yes`, `RestrictRealtime=yes` and `RestrictSUIDSGID=yes` (systemd.exec(5)). As in systemd, each of them
is a filter of its own, and the kernel asks all of them.
"""

import errno
import os
import signal
import socket
import stat
import sys

from seccomp import ALLOW, EQ, ERRNO, GT, MASKED_EQ, NE, Arch, Arg, SyscallFilter, resolve_syscall

EPERM = ERRNO(errno.EPERM)
NAMESPACES = (0x00000080, 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
REAL_TIME = (1, 2, 6)


def lines(path):
    with open(path) as file:
        return file.read().split()


def exists(call):
    """Whether this architecture has the system call."""
    return resolve_syscall(Arch(), call) >= 0


def allowed_calls(calls):
    found = SyscallFilter(EPERM)
    for call in filter(exists, calls):
        found.add_rule(ALLOW, call)
    return found


def address_families(families):
    found = SyscallFilter(ALLOW)
    numbers = sorted(int(getattr(socket, family)) for family in families)
    refusal = ERRNO(errno.EAFNOSUPPORT)
    for number in set(range(max(numbers))) - set(numbers):
        found.add_rule(refusal, "socket", Arg(0, EQ, number))
    found.add_rule(refusal, "socket", Arg(0, GT, max(numbers)))
    return found


def namespaces():
    found = SyscallFilter(ALLOW)
    found.add_rule(ERRNO(errno.ENOSYS), "clone3")
    found.add_rule(EPERM, "setns")
    for flag in NAMESPACES:
        found.add_rule(EPERM, "unshare", Arg(0, MASKED_EQ, flag, flag))
        found.add_rule(EPERM, "clone", Arg(0, MASKED_EQ, flag, flag))
    return found


def personality_and_real_time():
    found = SyscallFilter(ALLOW)
    found.add_rule(EPERM, "personality", Arg(0, NE, 0))
    for policy in REAL_TIME:
        found.add_rule(EPERM, "sched_setscheduler", Arg(1, EQ, policy))
    return found


def other_users_rights():
    found = SyscallFilter(ALLOW)
    for call, mode in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("mkdir", 1), ("mkdirat", 2)):
        if exists(call):
            for bit in (stat.S_ISUID, stat.S_ISGID):
                found.add_rule(EPERM, call, Arg(mode, MASKED_EQ, bit, bit))
    return found


def main():
    calls, families, program, *arguments = sys.argv[1:]
    # Python ignores signals that its child must not ignore.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    filters = [namespaces(), address_families(lines(families)), personality_and_real_time(), other_users_rights()]
    for found in [*filters, allowed_calls(lines(calls))]:
        found.load()
    os.execv(program, [program, *arguments])


main()
