//! [`os::Journal`] with programs in place of the journal command. That the real command prints the
//! same through it is tested from outside, in `tests/`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os::{Journal, JournalError, JournalOptions, JournalReader, JournalShare};
use tests::until;

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

fn following() -> JournalOptions {
    JournalOptions {
        follow: true,
        ..JournalOptions::default()
    }
}

async fn piece(reader: &mut JournalReader) -> io::Result<Option<bytes::Bytes>> {
    poll_fn(|context| reader.poll_piece(context)).await
}

async fn whole(mut reader: JournalReader) -> String {
    let mut text = Vec::new();
    while let Some(piece) = piece(&mut reader).await.unwrap() {
        text.extend(piece);
    }
    String::from_utf8(text).unwrap()
}

fn is_there(pid: u32) -> bool {
    // A process that has ended and was not waited for is still listed, without memory.
    std::fs::read_to_string(format!("/proc/{pid}/statm"))
        .is_ok_and(|sizes| !sizes.starts_with("0 "))
}

async fn until_gone(pid: u32) {
    until("the process to be gone", || async {
        if is_there(pid) { Err(pid) } else { Ok(()) }
    })
    .await;
}

#[tokio::test]
async fn options_are_arguments_of_their_own_and_the_host_root_is_named_where_it_is_another() {
    let all = JournalOptions {
        all: true,
        follow: true,
        unit: Some("a b;$(reboot) `x` --file=y".to_owned()),
        identifier: Some("id\n--file=y".to_owned()),
        count: Some(u64::MAX),
        since: Some("2026-01-31 12:00".to_owned()),
        until: Some("now".to_owned()),
        format: Some("json".to_owned()),
    };
    let printed = |root: &str| Journal::new(program("print-arguments"), root).share();
    let reader = printed("/")
        .read(&JournalOptions::default(), |_| {})
        .await
        .unwrap();
    assert_eq!(whole(reader).await, "");
    let reader = printed("/").read(&all, |_| {}).await.unwrap();
    assert_eq!(
        whole(reader).await,
        "--all\n--follow\n--unit=a b;$(reboot) `x` --file=y\n--identifier=id\n--file=y\n\
         --lines=2147483647\n--since=2026-01-31 12:00\n--until=now\n--output=json\n"
    );
    let reader = printed("/mnt/root")
        .read(&JournalOptions::default(), |_| {})
        .await
        .unwrap();
    assert_eq!(whole(reader).await, "--root=/mnt/root\n");
}

#[tokio::test]
async fn a_value_that_could_be_an_option_starts_nothing() {
    let journal = Journal::new("/nowhere/journalctl", "/").share();
    let long = "a".repeat(1025);
    for value in ["-f", "--vacuum-time=1s", "-", "a\0b", &long] {
        let value = Some(value.to_owned());
        for options in [
            JournalOptions {
                unit: value.clone(),
                ..JournalOptions::default()
            },
            JournalOptions {
                identifier: value.clone(),
                ..JournalOptions::default()
            },
            JournalOptions {
                since: value.clone(),
                ..JournalOptions::default()
            },
            JournalOptions {
                until: value.clone(),
                ..JournalOptions::default()
            },
            JournalOptions {
                format: value.clone(),
                ..JournalOptions::default()
            },
        ] {
            let refused = journal.read(&options, |_| {}).await.unwrap_err();
            assert!(
                matches!(refused, JournalError::Invalid { .. }),
                "{options:?}: {refused}"
            );
        }
    }
    let missing = journal
        .read(&JournalOptions::default(), |_| {})
        .await
        .unwrap_err();
    assert!(matches!(missing, JournalError::Start { .. }), "{missing}");
}

#[tokio::test]
async fn a_reader_that_leaves_ends_the_command() {
    let journal = Journal::new(program("wait"), "/").share();
    let mut reader = journal.read(&following(), |_| {}).await.unwrap();
    let bytes = piece(&mut reader).await.unwrap().unwrap();
    let pid: u32 = String::from_utf8_lossy(&bytes).trim().parse().unwrap();
    assert_eq!(reader.process_id(), Some(pid));
    assert!(is_there(pid));
    // Ctrl-C in a terminal, which goes to the supervisor's group, is not for the command.
    let group = rustix::process::getpgid(rustix::process::Pid::from_raw(pid.cast_signed()));
    assert_ne!(group.unwrap(), rustix::process::getpgrp());
    drop(reader);
    until_gone(pid).await;

    // Also a process that is printing while nobody reads its output.
    let journal = Journal::new(program("flood"), "/").share();
    let mut reader = journal.read(&following(), |_| {}).await.unwrap();
    piece(&mut reader).await.unwrap().unwrap();
    let pid = reader.process_id().unwrap();
    drop(reader);
    until_gone(pid).await;
}

#[tokio::test]
async fn errors_of_the_command_neither_stop_it_nor_reach_the_reader() {
    let journal = Journal::new(program("complain"), "/").share();
    let (report, reported) = tokio::sync::oneshot::channel();
    let report = move |complaint: &str| report.send(complaint.to_owned()).unwrap();
    let options = JournalOptions::default();
    let reader = journal.read(&options, report).await.unwrap();
    assert_eq!(whole(reader).await, "a little\n");
    // It is for the caller, at a bounded length.
    let complaint = reported.await.unwrap();
    assert!(complaint.starts_with("a complaint; a complaint; "));
    assert!(complaint.len() < 8 << 10, "{}", complaint.len());
}

/// Starts readers until one is refused.
async fn read_all(
    share: &JournalShare,
    options: &JournalOptions,
) -> (Vec<JournalReader>, JournalError) {
    let mut readers = Vec::new();
    loop {
        match share.read(options, |_| {}).await {
            Ok(reader) => readers.push(reader),
            Err(refused) => return (readers, refused),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_client_has_half_of_the_readers_and_followers_leave_room_for_others() {
    let journal = Journal::new(program("wait"), "/");
    let [one, other, third] = [(); 3].map(|()| journal.share());
    let (following, once) = (following(), JournalOptions::default());
    let (mut followers, refused) = read_all(&one, &following).await;
    assert_eq!(followers.len(), 12);
    assert_eq!(
        refused.to_string(),
        "the client has 12 following readers of the journal, the maximum for one client"
    );
    let (mut others, refused) = read_all(&one, &once).await;
    assert_eq!(others.len(), 4);
    assert_eq!(
        refused.to_string(),
        "the client has 16 readers of the journal, the maximum for one client"
    );
    // Clones of a share are the same client.
    let refused = one.clone().read(&once, |_| {}).await.unwrap_err();
    assert!(matches!(refused, JournalError::ShareBusy(_)), "{refused}");

    let (of_other, _) = read_all(&other, &following).await;
    assert_eq!(of_other.len(), 12);
    let refused = third.read(&following, |_| {}).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the journal has 24 following readers, the maximum for all clients together"
    );
    let (of_third, refused) = read_all(&third, &once).await;
    assert_eq!(of_third.len(), 4);
    assert_eq!(
        refused.to_string(),
        "the journal has 32 readers, the maximum for all clients together"
    );
    followers.pop();
    third.read(&following, |_| {}).await.unwrap();
    others.pop();
    one.read(&once, |_| {}).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_follow_is_ended_after_half_an_hour() {
    let journal = Journal::new(program("wait"), "/").share();
    let begun = tokio::time::Instant::now();
    let mut reader = journal
        .read(&JournalOptions::default(), |_| {})
        .await
        .unwrap();
    let pid = reader.process_id().unwrap();
    let error = loop {
        match piece(&mut reader).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ended by itself"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(
        begun.elapsed().as_secs() / 60,
        Duration::from_secs(30 * 60).as_secs() / 60
    );
    assert!(piece(&mut reader).await.unwrap().is_none());
    until_gone(pid).await;
}
