//! A service that asks the service `server` for a greeting every few seconds and prints it.
//!
//! The same source is a WebAssembly service and, built for musl, a container image. As a WebAssembly
//! service it ends when its standard input does, which is how such services are stopped; a container
//! gets a signal instead.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const SERVER: &str = "server:8080";
const PAUSE: Duration = Duration::from_secs(3);

fn main() {
    loop {
        match ask() {
            Ok(greeting) => println!("the server says: {}", greeting.trim_end()),
            Err(error) => eprintln!("the server does not answer: {error}"),
        }
        if stops_within(PAUSE) {
            println!("good bye");
            return;
        }
    }
}

fn ask() -> std::io::Result<String> {
    let mut connection = TcpStream::connect(SERVER)?;
    write!(
        connection,
        "GET / HTTP/1.1\r\nhost: {SERVER}\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    connection.take(64 << 10).read_to_string(&mut answer)?;
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    body.ok_or_else(|| std::io::Error::other("the answer is not HTTP"))
}

/// Waits; returns whether the service should stop.
#[cfg(target_os = "wasi")]
fn stops_within(pause: Duration) -> bool {
    use wasip2::clocks::monotonic_clock::subscribe_duration;
    use wasip2::io::poll::poll;

    let input = wasip2::cli::stdin::get_stdin();
    let input = input.subscribe();
    let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
    let pause = subscribe_duration(pause);
    // Nothing ever arrives on the input: if it is ready, it has ended.
    poll(&[&input, &pause]).contains(&0)
}

#[cfg(not(target_os = "wasi"))]
fn stops_within(pause: Duration) -> bool {
    std::thread::sleep(pause);
    false
}
