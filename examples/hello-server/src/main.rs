//! A service that greets whoever asks: HTTP on port 8080, with nothing but `std`.
//!
//! The same source is a WebAssembly service and, built for musl, a container image.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// The longest request head that is read, in bytes.
const MAX_HEAD: u64 = 16 << 10;

fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:8080")?;
    println!("listening on port 8080");
    let mut count = 0_u64;
    for connection in listener.incoming() {
        count += 1;
        match connection.and_then(|connection| answer(connection, count)) {
            Ok(request) => println!("{request}: greeting number {count}"),
            Err(error) => eprintln!("a request failed: {error}"),
        }
    }
    Ok(())
}

/// Answers one request and returns its first line.
fn answer(mut connection: TcpStream, count: u64) -> std::io::Result<String> {
    // One client at a time is served, so none may keep the others waiting for long.
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut head = BufReader::new(Read::by_ref(&mut connection).take(MAX_HEAD));
    let mut request = String::new();
    head.read_line(&mut request)?;
    let mut line = String::new();
    while head.read_line(&mut line)? > 0 && !line.trim().is_empty() {
        line.clear();
    }
    let greeting = format!("Hello! You are visitor number {count}.\n");
    write!(
        connection,
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{greeting}",
        greeting.len()
    )?;
    Ok(request.trim().to_owned())
}
