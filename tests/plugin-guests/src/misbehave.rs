//! Things that a plugin should not do.

use std::hint::black_box;

use crate::bindings::platform::supervisor::log;
use crate::bindings::platform::supervisor::types::{Body, Error, Response};
use crate::{answer, error, text};

pub(crate) fn handle(what: &str) -> Option<Result<Response, Error>> {
    Some(match what {
        "spin" => spin(),
        "memory" => memory(),
        "stack" => text(recurse(1).to_string()),
        "panic" => panic!("this plugin panics\nin two lines"),
        "exit" => std::process::exit(3),
        "log" => {
            for number in 0..1_000 {
                log::write(log::Level::Info, &format!("line {number}"));
                println!("printed {number}");
            }
            text("logged")
        }
        "status-0" => answer(0, &[], ""),
        "status-101" => answer(101, &[], ""),
        "bad-header" => answer(200, &[("a b", "c")], ""),
        "header-break" => answer(200, &[("a", "b\r\nset-cookie: c")], ""),
        "hop-by-hop" => answer(200, &[("transfer-encoding", "chunked")], ""),
        "many-headers" => answer(200, &[("a", "b"); 1_000], ""),
        "huge-header" => answer(200, &[("a", &"b".repeat(1 << 20))], ""),
        "huge-body" => Ok(Response {
            status: 200,
            headers: Vec::new(),
            body: Body::Bytes(vec![0; 2 << 20]),
        }),
        "wrong-length" => answer(200, &[("content-length", "7000")], "short"),
        "error" => error(418, "a teapot"),
        "long-error" => error(400, "\u{1}".repeat(1 << 20)),
        "odd-error" => error(200, "no error at all"),
        _ => return None,
    })
}

pub(crate) fn spin() -> ! {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

fn memory() -> ! {
    let mut all = Vec::new();
    loop {
        all.push(vec![1_u8; 1 << 20]);
        black_box(&all);
    }
}

#[inline(never)]
fn recurse(depth: u64) -> u64 {
    let mut room = [depth; 64];
    black_box(&mut room);
    if depth == u64::MAX {
        0
    } else {
        recurse(depth + 1) + room[3]
    }
}
