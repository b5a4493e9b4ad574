//! Derives why a call failed from wasmtime's errors.

use plugin_protocol::text::{LONGEST, one_line};
use plugin_protocol::{CallRefusal, Failure};
use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use crate::guest::Guest;
use crate::handler::UnreadableAnswer;

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
        let most = most_data(limits.body);
        return if error.is::<UnreadableAnswer>() {
            Failure::answer_too_large_to_read(most, limits.body)
        } else {
            Failure::TooMuchData { limit: most }
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
        // The most frequent reason is a stack that grows beyond its place in memory, and nothing else identifies it.
        Some(trap @ Trap::MemoryOutOfBounds) => {
            format!("{trap}, probably because its stack overflowed")
        }
        Some(trap) => trap.to_string(),
        None if error.downcast_ref::<I32Exit>().is_some() => ENDED_ITSELF.to_owned(),
        None => error.root_cause().to_string(),
    };
    Failure::Trap {
        what: one_line(&what, LONGEST),
        trace: one_line(&format!("{error:?}"), TRACE),
        account,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
