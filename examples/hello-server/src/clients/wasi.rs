//! The clients that connect until the standard input ends, with the sockets of WASI itself, because a
//! program can wait for them and the input together. A resource must be dropped after its children, so
//! the fields are in that order.

use std::io::{Error, Read, Result, Write};

use wasip2::cli::stdin::get_stdin;
use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::{InputStream, OutputStream};
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::network::{ErrorCode, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress};
use wasip2::sockets::tcp::TcpSocket;
use wasip2::sockets::tcp_create_socket::create_tcp_socket;

/// How long a client may take, in nanoseconds. Only one is served at a time, so none may keep the
/// others waiting for long.
const PATIENCE: u64 = 5_000_000_000;

pub(crate) struct Clients {
    arrival: Pollable,
    socket: TcpSocket,
    stop: Pollable,
    _input: InputStream,
}

impl Clients {
    pub(crate) fn listen(port: u16) -> Result<Self> {
        let socket = create_tcp_socket(IpAddressFamily::Ipv4).map_err(error)?;
        let arrival = socket.subscribe();
        let address = (0, 0, 0, 0);
        let everywhere = IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address });
        socket
            .start_bind(&instance_network(), everywhere)
            .map_err(error)?;
        finish(&arrival, || socket.finish_bind())?;
        socket.start_listen().map_err(error)?;
        finish(&arrival, || socket.finish_listen())?;
        let input = get_stdin();
        Ok(Clients {
            arrival,
            socket,
            stop: input.subscribe(),
            _input: input,
        })
    }

    /// Waits for the next client; `None` if the service should stop.
    pub(crate) fn next(&self) -> Option<Result<Connection<'_>>> {
        loop {
            // Nothing ever arrives on the input: if it is ready, it has ended.
            if poll(&[&self.stop, &self.arrival]).contains(&0) {
                return None;
            }
            match self.socket.accept() {
                // The client has already disconnected.
                Err(ErrorCode::WouldBlock) => {}
                Err(code) => return Some(Err(error(code))),
                Ok((socket, input, output)) => {
                    return Some(Ok(Connection {
                        input,
                        output,
                        _socket: socket,
                        stop: &self.stop,
                    }));
                }
            }
        }
    }
}

pub(crate) struct Connection<'a> {
    input: InputStream,
    output: OutputStream,
    _socket: TcpSocket,
    stop: &'a Pollable,
}

impl Read for Connection<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let something = self.input.subscribe();
        let late = subscribe_duration(PATIENCE);
        if !poll(&[&something, &late, self.stop]).contains(&0) {
            return Err(Error::other("no request came"));
        }
        drop(something);
        Read::read(&mut self.input, buffer)
    }
}

impl Write for Connection<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        Write::write(&mut self.output, bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Write::flush(&mut self.output)
    }
}

/// Waits until an operation in progress is done.
fn finish(ready: &Pollable, step: impl Fn() -> std::result::Result<(), ErrorCode>) -> Result<()> {
    loop {
        match step() {
            Err(ErrorCode::WouldBlock) => ready.block(),
            done => return done.map_err(error),
        }
    }
}

fn error(code: ErrorCode) -> Error {
    Error::other(format!("{code:?}"))
}
