//! Derives why a call failed from wasmtime's errors.

use plugin_protocol::text::{LONGEST, one_line};
use plugin_protocol::{CallRefusal, Failure};
use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use crate::failed_function;
use crate::guest::Guest;

/// The most of a trace that is logged, in bytes. The names of functions in it are chosen by the plugin.
const TRACE: usize = 1 << 10;

/// What happened to an instance that called `exit` of WASI.
const ENDED_ITSELF: &str = "it ended itself (`process::exit`); return an error instead";

/// The most bytes that a guest can pass to the host in one call beyond the longest body of an answer. They count as the
/// host stores them: an empty header takes 48.
const HANDED_OVER: usize = 1 << 20;

/// How wasmtime's error begins when a guest has passed more than that. Its type is private.
const TOO_MUCH_DATA: &str = "too much data is being copied between the host and the guest";

/// Returns how many bytes a plugin with this limit for bodies can pass to the host at once.
pub(crate) fn most_data(body: usize) -> usize {
    body.saturating_add(HANDED_OVER)
}

/// Derives the failure from wasmtime's error for a call in a store with this data.
pub(crate) fn classify(error: &wasmtime::Error, guest: &Guest, cpu_exceeded: bool) -> Failure {
    let limits = &guest.blueprint.limits;
    let trap = error.downcast_ref::<Trap>().copied();
    if cpu_exceeded && matches!(trap, Some(Trap::Interrupt)) {
        return Failure::Cpu { limit: limits.cpu };
    }
    if error.root_cause().to_string().starts_with(TOO_MUCH_DATA) {
        return Failure::TooMuchData {
            limit: most_data(limits.body),
            body: limits.body,
        };
    }
    if let Some(CallRefusal::Busy(bound)) = error.downcast_ref() {
        return Failure::Busy(*bound);
    }
    if let Some(bound) = guest.memory.no_room {
        return Failure::Busy(bound);
    }
    if guest.memory.exceeded {
        return Failure::Memory {
            limit: limits.memory,
        };
    }
    trapped(error, guest.log.account_of_failure())
}

/// wasmtime's text about a trap contains names that the plugin chose.
fn trapped(error: &wasmtime::Error, account: Option<String>) -> Failure {
    let what = match error.downcast_ref::<Trap>() {
        Some(trap) => match hint(*trap, account.is_some()) {
            Some(hint) => format!("{trap}, {hint}"),
            None => trap.to_string(),
        },
        None if error.downcast_ref::<I32Exit>().is_some() => ENDED_ITSELF.to_owned(),
        None => error.root_cause().to_string(),
    };
    let what = one_line(&what, LONGEST);
    // Only the author needs the function, and callers do not see the account.
    let place = || {
        let function = failed_function::find(error)?;
        Some(format!("failed: {what}, in `{function}`"))
    };
    Failure::Trap {
        account: account.or_else(place),
        trace: one_line(&format!("{error:?}"), TRACE),
        what,
    }
}

/// Returns what a trap probably means, for those whose text names only the effect.
fn hint(trap: Trap, has_account: bool) -> Option<&'static str> {
    match trap {
        // A stack that grows beyond its place in memory, or in C and Go an address that is not one: nothing tells the
        // two apart.
        Trap::MemoryOutOfBounds => {
            Some("probably because its stack overflowed or it used an invalid pointer")
        }
        Trap::StackOverflow => Some("probably because of endless recursion"),
        // Many languages end a program with it, after an account of the reason.
        Trap::UnreachableCodeReached if !has_account => {
            Some("probably because it called `abort` or a check of its language failed")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trap_without_an_account_says_what_it_probably_means() {
        let failed = "failed: it had no rail".to_owned();
        for (trap, account, expected) in [
            (
                Trap::StackOverflow,
                None,
                "wasm trap: call stack exhausted, probably because of endless recursion",
            ),
            (
                Trap::UnreachableCodeReached,
                None,
                "wasm trap: wasm `unreachable` instruction executed, probably because it called `abort` or a check of its \
                 language failed",
            ),
            (
                Trap::UnreachableCodeReached,
                Some(failed),
                "wasm trap: wasm `unreachable` instruction executed",
            ),
            (
                Trap::MemoryOutOfBounds,
                None,
                "wasm trap: out of bounds memory access, probably because its stack overflowed or it used an invalid pointer",
            ),
            (
                Trap::IntegerDivisionByZero,
                None,
                "wasm trap: integer divide by zero",
            ),
        ] {
            let error = wasmtime::Error::from(trap);
            let Failure::Trap {
                what,
                account: shown,
                ..
            } = trapped(&error, account.clone())
            else {
                panic!("it is a trap");
            };
            assert_eq!((what.as_str(), shown), (expected, account));
        }
    }

    #[test]
    fn a_trap_and_its_trace_are_one_short_line_each() {
        let named = "f\nINFO access: POST /v1/reboot status=202 ".repeat(1000);
        let error = wasmtime::Error::msg(named.clone()).context(named);
        let Failure::Trap { what, trace, .. } = trapped(&error, None) else {
            panic!("it is a trap");
        };
        for (text, longest) in [(what, LONGEST), (trace, TRACE)] {
            assert!(text.len() <= longest + 3, "{}", text.len());
            assert!(!text.contains('\n'), "{text}");
        }
    }
}
