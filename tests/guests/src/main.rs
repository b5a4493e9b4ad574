//! A program for the tests of the engines: its first argument selects what it does.
//!
//! It is one program so that it is compiled once; built as a component for the wasm engine and as a static binary for
//! container images, it behaves the same in both.

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["print", lines @ ..] => print(lines),
        ["print-and-wait", lines @ ..] => print(lines).and_then(|()| wait_for_stop()),
        ["print-both", out, err] => print_both(out, err),
        ["print-long", length] => print(&[&"x".repeat(length.parse().unwrap_or(0))]),
        ["print-bytes"] => io::stdout().write_all(b"a\n\xff\xfe\nb\n"),
        ["environment"] => environment(),
        ["tick"] => tick(),
        ["serve", port, text] => serve(port, text),
        ["fetch", host, port] => fetch(host, port),
        ["dump"] => dump().and_then(|()| wait_for_stop()),
        ["wait"] => wait_for_stop(),
        ["ignore-stop"] => ignore_stop(),
        ["exit", code] => exit(code.parse().unwrap_or(255)),
        ["exit-after", milliseconds, code] => {
            thread::sleep(Duration::from_millis(milliseconds.parse().unwrap_or(0)));
            exit(code.parse().unwrap_or(255))
        }
        ["trap"] => trap(),
        ["spin"] => spin(),
        ["fill-memory"] => fill_memory(),
        ["flood"] => flood(),
        ["write", path, text] => fs::write(path, text).and_then(|()| print(&["written"])),
        ["append", path, text] => append(path, text),
        ["count-starts", path] => count_starts(path).and_then(|()| wait_for_stop()),
        ["write-and-wait", path, text] => fs::write(path, text)
            .and_then(|()| print(&["written"]))
            .and_then(|()| wait_for_stop()),
        ["write-at-and-wait", variable, text] => env::var(variable)
            .map_err(io::Error::other)
            .and_then(|path| fs::write(path, text))
            .and_then(|()| print(&["written"]))
            .and_then(|()| wait_for_stop()),
        ["read", path] => fs::read_to_string(path).and_then(|text| print(&[&text])),
        ["tcp-echo", address] => tcp_echo(address),
        ["udp-echo", address] => udp_echo(address),
        ["ask-who", address] => ask_who(address).and_then(|()| wait_for_stop()),
        ["ask", targets @ ..] => ask(targets).and_then(|()| wait_for_stop()),
        _ => Err(io::Error::other(format!("unknown arguments: {words:?}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(lines: &[&str]) -> io::Result<()> {
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

fn print_both(out: &str, err: &str) -> io::Result<()> {
    println!("{out}");
    eprintln!("{err}");
    Ok(())
}

fn environment() -> io::Result<()> {
    for (name, value) in env::vars() {
        println!("{name}={value}");
    }
    Ok(())
}

fn tick() -> io::Result<()> {
    for number in 0_u64.. {
        println!("tick {number}");
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Ends the program with a code. WASI 0.2 has a function for it that `std` does not use: `std` only distinguishes
/// success and failure.
fn exit(code: u8) -> ! {
    #[cfg(target_os = "wasi")]
    wasip2::cli::exit::exit_with_code(code);
    std::process::exit(code.into())
}

/// Waits for the end of the standard input, which signals a wasm service to stop.
fn wait_for_stop() -> io::Result<()> {
    println!("waiting");
    io::copy(&mut io::stdin(), &mut io::sink())?;
    println!("stopped");
    Ok(())
}

/// Waits for ever, and ignores all signals to stop.
fn ignore_stop() -> io::Result<()> {
    println!("waiting");
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// Prints the environment, one fact per line.
fn dump() -> io::Result<()> {
    for argument in env::args().skip(1) {
        println!("argument {argument}");
    }
    for (name, value) in env::vars() {
        println!("variable {name}={value}");
    }
    println!("folder {}", env::current_dir()?.display());
    println!("dumped");
    Ok(())
}

fn trap() -> io::Result<()> {
    println!("about to trap");
    std::process::abort()
}

fn spin() -> io::Result<()> {
    println!("spinning");
    let mut number = 0_u64;
    loop {
        number = std::hint::black_box(number.wrapping_add(1));
    }
}

/// Allocates memory until there is no more.
fn fill_memory() -> io::Result<()> {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(1 << 20).is_err() {
            println!("no more memory after {} MiB", blocks.len());
            return Err(io::Error::other("out of memory"));
        }
        piece.resize(1 << 20, 1);
        blocks.push(piece);
    }
}

fn flood() -> io::Result<()> {
    let line = "x".repeat(100);
    loop {
        println!("{line}");
    }
}

/// Adds a line to the file and prints the whole file.
fn append(path: &str, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    writeln!(file, "{text}")?;
    print!("{}", fs::read_to_string(path)?);
    Ok(())
}

/// Adds a line to the file and prints the number of lines: one for each start, for as long as the data is kept.
fn count_starts(path: &str) -> io::Result<()> {
    let before = fs::read_to_string(path).unwrap_or_default();
    let starts = before.lines().count() + 1;
    fs::write(path, format!("{before}a start\n"))?;
    println!("starts {starts}");
    Ok(())
}

/// Answers every HTTP request with the text.
fn serve(port: &str, text: &str) -> io::Result<()> {
    let port: u16 = port.parse().map_err(io::Error::other)?;
    for connection in TcpListener::bind(("0.0.0.0", port))?.incoming() {
        let answer = |mut connection: TcpStream| {
            let mut head = [0; 4096];
            let _ = connection.read(&mut head)?;
            let length = text.len();
            write!(
                connection,
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
            )
        };
        // A client that disconnects is not an error.
        let _ = connection.and_then(answer);
    }
    Ok(())
}

fn fetch(host: &str, port: &str) -> io::Result<()> {
    let mut connection = TcpStream::connect(format!("{host}:{port}"))?;
    write!(
        connection,
        "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    println!("{}", body.ok_or_else(|| io::Error::other("no answer"))?);
    Ok(())
}

/// Sends received data back, one connection after the other, until a connection sends `stop`.
fn tcp_echo(address: &str) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    for connection in listener.incoming() {
        let mut connection = connection?;
        let mut buffer = [0; 4096];
        loop {
            let length = match connection.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(length) => length,
            };
            if &buffer[..length] == b"stop" {
                return Ok(());
            }
            if &buffer[..length] == b"who" {
                let from = connection.peer_addr()?.to_string();
                connection.write_all(from.as_bytes())?;
            } else {
                connection.write_all(&buffer[..length])?;
            }
        }
    }
    Ok(())
}

fn udp_echo(address: &str) -> io::Result<()> {
    let socket = UdpSocket::bind(address)?;
    println!("listening on {}", socket.local_addr()?);
    let mut buffer = [0; 4096];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        socket.send_to(&buffer[..length], from)?;
    }
}

/// Sends a request to each target and prints the result: `tcp://host:port`, `udp://host:port` (echoes of "ping") and
/// `name://host`.
fn ask(targets: &[&str]) -> io::Result<()> {
    for target in targets {
        let outcome = match target.split_once("://") {
            Some(("tcp", address)) => ask_tcp(address),
            Some(("udp", address)) => ask_udp(address),
            Some(("name", name)) => look_up(name),
            _ => Err(io::Error::other("what is that")),
        };
        match outcome {
            Ok(answer) => println!("{target}: {answer}"),
            Err(error) => println!("{target}: failed: {:?}: {error}", error.kind()),
        }
    }
    Ok(())
}

fn ask_tcp(address: &str) -> io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    connection.write_all(b"ping")?;
    let mut answer = [0; 64];
    let length = connection.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

/// Asks a `tcp-echo` for our address, and prints both addresses.
fn ask_who(address: &str) -> io::Result<()> {
    let mut connection = TcpStream::connect(address)?;
    connection.write_all(b"who")?;
    let mut answer = [0; 64];
    let length = connection.read(&mut answer)?;
    println!("seen as {}", String::from_utf8_lossy(&answer[..length]));
    println!("asked {}", connection.peer_addr()?);
    Ok(())
}

fn ask_udp(address: &str) -> io::Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.send_to(b"ping", address)?;
    let mut answer = [0; 64];
    let (length, _) = socket.recv_from(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

fn look_up(name: &str) -> io::Result<String> {
    let addresses = (name, 1).to_socket_addrs()?;
    let addresses: Vec<String> = addresses.map(|address| address.ip().to_string()).collect();
    Ok(addresses.join(" "))
}
