//! What containers print.

use std::time::Duration;

use engine::{LogLine, LogsFrom};
use futures::StreamExt;
use model::ContainerState;
use wasm_service::log_file::now_ms;

use super::{Fixture, Program, next_line};

pub async fn logs_from_the_start_hold_every_line_of_both_outputs(fixture: &dyn Fixture) {
    let printed = Program::Print {
        out: "to out".into(),
        err: "to err".into(),
    };
    let before = now_ms();
    let id = fixture.start(&fixture.service("print", &printed)).await;
    fixture.wait_for(&id, ContainerState::Exited).await;

    let logs = fixture.engine().logs(&id, LogsFrom::Start).await.unwrap();
    let lines: Vec<_> = logs.take(2).map(Result::unwrap).collect().await;
    let mut found: Vec<_> = lines
        .iter()
        .map(|line| (line.message.as_str(), line.stderr))
        .collect();
    // There is no order between the two outputs.
    found.sort_unstable();
    assert_eq!(found, [("to err", true), ("to out", false)]);
    for line in &lines {
        // A second of tolerance, since a virtual machine's clock may be set in between.
        assert!(line.timestamp_ms > before - 1000, "{line:?}");
        assert!(line.timestamp_ms < now_ms() + 1000, "{line:?}");
    }
}

pub async fn logs_since_a_moment_begin_with_its_lines(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let id = fixture
        .start(&fixture.service("tick", &Program::Tick))
        .await;
    let mut first = engine.logs(&id, LogsFrom::Start).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 6 {
        seen.push(next_line(&mut first).await.unwrap());
    }
    // The engine is a new instance by now, as after a restart of the supervisor.
    let since = seen[3].timestamp_ms;
    let engine = fixture.engine_of(fixture.ownership()).await;
    let mut later = engine.logs(&id, LogsFrom::Since(since)).await.unwrap();
    let expected = seen.iter().find(|line| line.timestamp_ms >= since).unwrap();
    for number in 0..4 {
        let line = next_line(&mut later).await.unwrap();
        let begin: u32 = expected
            .message
            .strip_prefix("tick ")
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(line.message, format!("tick {}", begin + number));
    }
}

pub async fn logs_go_on_over_a_restart_and_end_with_the_container(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let id = fixture
        .create(&fixture.service("tick", &Program::Tick))
        .await;
    // From before the first start.
    let mut logs = engine.logs(&id, LogsFrom::Start).await.unwrap();
    let mut seen = Vec::new();
    for runs in 1..=3 {
        engine.start_container(&id).await.unwrap();
        // Two lines of this run, after the lines that the previous run printed until its stop.
        let begun = |seen: &[LogLine]| seen.iter().filter(|line| line.message == "tick 0").count();
        while begun(&seen) < runs || seen.last().is_some_and(|line| line.message == "tick 0") {
            seen.push(next_line(&mut logs).await.unwrap());
        }
        engine.stop_container(&id, Duration::ZERO).await.unwrap();
    }
    engine.remove_container(&id).await.unwrap();
    while let Some(line) = next_line(&mut logs).await {
        seen.push(line);
    }

    // Each line once and in order: a run counts up from 0.
    let mut expected = 0;
    for line in &seen {
        if line.message == "tick 0" {
            expected = 0;
        }
        assert_eq!(line.message, format!("tick {expected}"), "{seen:?}");
        expected += 1;
    }
    assert!(seen.is_sorted_by_key(|line| line.timestamp_ms), "{seen:?}");
}

pub async fn long_lines_come_in_pieces(fixture: &dyn Fixture) {
    const LENGTH: usize = 100_000;
    let id = fixture
        .start(&fixture.service("long", &Program::PrintLong(LENGTH)))
        .await;
    fixture.wait_for(&id, ContainerState::Exited).await;
    let mut logs = fixture.engine().logs(&id, LogsFrom::Start).await.unwrap();
    let mut length = 0;
    while length < LENGTH {
        let piece = next_line(&mut logs).await.unwrap().message;
        assert!(piece.len() <= 16 << 10, "{}", piece.len());
        assert!(piece.bytes().all(|byte| byte == b'x'), "{piece}");
        length += piece.len();
    }
    assert_eq!(length, LENGTH);
}

pub async fn bytes_that_are_not_text_do_not_stop_the_log(fixture: &dyn Fixture) {
    let (code, lines) = fixture
        .finish(&fixture.service("bytes", &Program::PrintBytes))
        .await;
    assert_eq!(code, Some(0));
    assert_eq!(lines, ["a", "\u{fffd}\u{fffd}", "b"]);
}
