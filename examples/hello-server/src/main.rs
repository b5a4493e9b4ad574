//! A service that greets its clients with the word in `GREETING`: HTTP on port 8080.
//!
//! The same source is a WebAssembly service and, built for musl, a container image. As a WebAssembly
//! service it ends when its standard input does, which is how such services are stopped; a container
//! gets a signal instead.

use std::io::{BufRead, BufReader, Read, Write};

// `std` cannot wait for a client and for the end of the input at the same time.
#[cfg_attr(target_os = "wasi", path = "clients/wasi.rs")]
#[cfg_attr(not(target_os = "wasi"), path = "clients/native.rs")]
mod clients;

use clients::Clients;

const PORT: u16 = 8080;
/// The longest request head that is read, in bytes.
const MAX_HEAD: u64 = 16 << 10;

fn main() -> std::io::Result<()> {
    let clients = Clients::listen(PORT)?;
    let greeting = std::env::var("GREETING").unwrap_or_else(|_| "Hello".to_owned());
    println!("listening on port {PORT}");
    let mut count = 0_u64;
    while let Some(connection) = clients.next() {
        count += 1;
        match connection.and_then(|connection| answer(connection, &greeting, count)) {
            Ok(request) => println!("{request}: greeting number {count}"),
            Err(error) => eprintln!("a request failed: {error}"),
        }
    }
    println!("good bye");
    Ok(())
}

/// Answers one request and returns its first line.
fn answer(
    mut connection: impl Read + Write,
    greeting: &str,
    count: u64,
) -> std::io::Result<String> {
    let mut head = BufReader::new(Read::by_ref(&mut connection).take(MAX_HEAD));
    let mut request = String::new();
    head.read_line(&mut request)?;
    let mut line = String::new();
    while head.read_line(&mut line)? > 0 && !line.trim().is_empty() {
        line.clear();
    }
    let greeting = format!("{greeting}! You are visitor number {count}.\n");
    write!(
        connection,
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{greeting}",
        greeting.len()
    )?;
    connection.flush()?;
    Ok(request.trim().to_owned())
}
