//! The health check of the service, made by its process from outside the component, which only affects it by its
//! answers. A slow or large answer costs at most the time limit and [`LONGEST_LINE`].

use std::io;
use std::net::SocketAddr;

use model::Protocol;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use wasm_service::{HealthCheck, HealthProbe, HealthStreak};

use crate::publish::Target;
use crate::state_file::{Run, SharedStateFile};

/// The longest first line of an answer, in bytes.
const LONGEST_LINE: u64 = 256;

/// The network of the service's ports.
pub(crate) enum ServicePorts {
    /// At the service's own address.
    Own(Target),
    /// In the host's network.
    Host,
}

/// Checks the service for as long as the process lives.
pub(crate) async fn keep_checking(check: HealthCheck, ports: ServicePorts, state: SharedStateFile) {
    let mut last: Option<(Run, HealthStreak)> = None;
    loop {
        sleep(check.interval).await;
        let Some(run) = state.lock().run() else {
            continue;
        };
        let probed = timeout(check.timeout, probe(&check.probe, &ports)).await;
        let passed = matches!(probed, Ok(Ok(true)));
        let mut streak = match last.take() {
            Some((of, streak)) if of == run => streak,
            _ => HealthStreak::default(),
        };
        let health = streak.add(&check, passed, run.begun.elapsed());
        state.lock().note_health(run, health);
        last = Some((run, streak));
    }
}

/// Whether one check passes.
async fn probe(probe: &HealthProbe, ports: &ServicePorts) -> io::Result<bool> {
    let (HealthProbe::Tcp { port } | HealthProbe::Http { port, .. }) = probe;
    let address = match ports {
        ServicePorts::Own(target) => target.at(Protocol::Tcp, *port),
        ServicePorts::Host => Some(SocketAddr::from(([127, 0, 0, 1], *port))),
    };
    let Some(address) = address else {
        return Ok(false);
    };
    let mut stream = TcpStream::connect(address).await?;
    let HealthProbe::Http { path, port } = probe else {
        return Ok(true);
    };
    // Only the status of HTTP matters here: a client would use memory in each service's process.
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nUser-Agent: supervisor-health-check\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut line = Vec::new();
    let mut answer = stream.take(LONGEST_LINE);
    while !line.contains(&b'\n') {
        if answer.read_buf(&mut line).await? == 0 {
            return Ok(false);
        }
    }
    Ok(status(&line).is_some_and(|status| (200..400).contains(&status)))
}

/// Returns the status at the beginning of an answer (RFC 9112, section 4).
fn status(answer: &[u8]) -> Option<u16> {
    let rest = answer.strip_prefix(b"HTTP/1.")?;
    let [b'0' | b'1', b' ', digits @ ..] = rest else {
        return None;
    };
    let (digits, after) = digits.split_at_checked(3)?;
    let ends = matches!(after.first(), Some(b' ' | b'\r' | b'\n'));
    let digits = std::str::from_utf8(digits).ok()?;
    (ends && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn the_status_is_read_from_the_first_line() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n", Some(200)),
            ("HTTP/1.0 404\r\n", Some(404)),
            ("HTTP/1.1 500 Internal Server Error\r\nA: b", Some(500)),
            ("HTTP/1.1 200\n", Some(200)),
            ("HTTP/1.1 2000 OK\r\n", None),
            ("HTTP/1.1 +20 OK\r\n", None),
            ("HTTP/2 200 OK\r\n", None),
            ("HTTP/1.1 20", None),
            ("SSH-2.0-x\r\n", None),
            ("", None),
        ] {
            assert_eq!(status(answer.as_bytes()), expected, "{answer:?}");
        }
    }

    /// Returns the result of a check of a server with this answer.
    async fn checked(answer: &'static [u8]) -> Option<bool> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            // The reader closes the connection once it has read enough.
            let _ = client.write_all(answer).await;
            let _ = client.read_to_end(&mut Vec::new()).await;
        });
        let path = "/".to_owned();
        let http = HealthProbe::Http { port, path };
        let probed = timeout(
            Duration::from_millis(500),
            probe(&http, &ServicePorts::Host),
        );
        probed.await.ok().map(|outcome| outcome.unwrap_or(false))
    }

    #[tokio::test]
    async fn an_answer_is_read_as_far_as_its_status_and_no_further() {
        assert_eq!(checked(b"HTTP/1.1 204 No Content\r\n").await, Some(true));
        assert_eq!(checked(b"HTTP/1.1 503 Busy\r\n\r\n").await, Some(false));
        // The line never ends.
        static ENDLESS: [u8; 1 << 16] = [b'x'; 1 << 16];
        assert_eq!(checked(&ENDLESS).await, Some(false));
        // A silent server is up to the time limit.
        assert_eq!(checked(b"").await, None);
    }

    #[tokio::test]
    async fn a_port_on_which_nobody_listens_fails() {
        let held = held_port::HeldPort::new().unwrap();
        let port = held.address().port();
        let outcome = probe(&HealthProbe::Tcp { port }, &ServicePorts::Host).await;
        assert!(!outcome.unwrap_or(false));
    }
}
