//! What the supervisor sends to systemd.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use tests::{DEADLINE, Supervisor};

/// Receives until `word` arrives; earlier messages must be in `others`.
fn until_notified(socket: &UnixDatagram, word: &str, others: &[&str]) {
    loop {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).expect("nothing was sent in time");
        let message = std::str::from_utf8(&buffer[..length]).unwrap().trim();
        if message == word {
            return;
        }
        assert!(others.contains(&message), "{message} before {word}");
    }
}

#[tokio::test]
async fn the_supervisor_notifies_systemd_of_start_work_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let period = Duration::from_millis(200).as_micros();
    let mut device = Supervisor::on_wasm()
        .environment("NOTIFY_SOCKET", path.to_str().unwrap())
        .environment("WATCHDOG_USEC", period.to_string())
        .start()
        .await;
    until_notified(&socket, "READY=1", &[]);
    for _ in 0..3 {
        until_notified(&socket, "WATCHDOG=1", &[]);
    }
    assert_eq!(device.terminate().await.code(), Some(0));
    until_notified(&socket, "STOPPING=1", &["WATCHDOG=1"]);
}
