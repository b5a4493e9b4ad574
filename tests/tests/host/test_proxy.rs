//! A proxy that connects to no server: it sends each client what it requested, and with which user.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Returns what a client of [`serve`] reads.
pub(crate) fn message(address: SocketAddr, who: &str) -> String {
    format!("{address} by way of the proxy as {who}")
}

/// Serves in the network of the calling thread until the process ends; returns the port.
pub(crate) fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // The connection of a client that violates the protocol is closed.
            thread::spawn(move || answer(client));
        }
    });
    port
}

fn answer(mut client: TcpStream) -> io::Result<()> {
    let mut first = [0];
    client.read_exact(&mut first)?;
    let (address, who) = match first[0] {
        4 => socks4(&mut client)?,
        5 => socks5(&mut client)?,
        _ => http(&mut client)?,
    };
    client.write_all(message(address, &who).as_bytes())
}

fn socks4(client: &mut TcpStream) -> io::Result<(SocketAddr, String)> {
    let mut request = [0; 7];
    client.read_exact(&mut request)?;
    let [1, high, low, address @ ..] = request else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut user = Vec::new();
    BufReader::with_capacity(1, &mut *client).read_until(0, &mut user)?;
    user.pop();
    client.write_all(&[0, 0x5a, 0, 0, 0, 0, 0, 0])?;
    Ok((socket(address, [high, low]), text(user)))
}

fn socks5(client: &mut TcpStream) -> io::Result<(SocketAddr, String)> {
    let methods = counted(client)?;
    let with_password = methods.contains(&2);
    client.write_all(&[5, if with_password { 2 } else { 0 }])?;
    let mut who = String::new();
    if with_password {
        client.read_exact(&mut [0])?;
        let (user, password) = (counted(client)?, counted(client)?);
        who = format!("{} with {}", text(user), text(password));
        client.write_all(&[1, 0])?;
    }
    let mut request = [0; 10];
    client.read_exact(&mut request)?;
    let [5, 1, 0, 1, a, b, c, d, high, low] = request else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    Ok((socket([a, b, c, d], [high, low]), who))
}

/// Reads `CONNECT address:port HTTP/1.0`, whose first letter was already read.
fn http(client: &mut TcpStream) -> io::Result<(SocketAddr, String)> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let port = request.split(' ').nth(1).and_then(|to| to.parse().ok());
    let port = port.ok_or(io::ErrorKind::InvalidData)?;
    client.write_all(b"HTTP/1.0 200 OK\r\n\r\n")?;
    Ok((port, String::new()))
}

fn counted(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut count = [0];
    client.read_exact(&mut count)?;
    let mut bytes = vec![0; count[0].into()];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn socket(address: [u8; 4], port: [u8; 2]) -> SocketAddr {
    (Ipv4Addr::from(address), u16::from_be_bytes(port)).into()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
