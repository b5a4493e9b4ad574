//! Services whose process was taken over and hides from the supervisor: it writes its own state.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use wasm_service::record::{self, STATE, State, Status};

use crate::fixture::test;
use crate::suite::{Fixture, Program};

/// Puts something in place of the state.
type Lie = fn(&Path, State);

fn write(path: &Path, state: &State) {
    record::write(path, state).unwrap();
}

const LIES: [(&str, Lie); 6] = [
    ("exited", |path, state| {
        let status = Status::Exited;
        write(path, &State { status, ..state });
    }),
    ("created", |path, _| write(path, &State::created())),
    ("no-process", |path, state| {
        let process = None;
        write(path, &State { process, ..state });
    }),
    ("damaged", |path, _| fs::write(path, "{\"half\": ").unwrap()),
    ("missing", |path, _| fs::remove_file(path).unwrap()),
    ("pipe", |path, _| {
        fs::remove_file(path).unwrap();
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }),
];

/// Services of others than root may have neither control groups nor users, so nothing identifies their processes.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_service_that_hides_behind_its_state_ends_when_it_is_stopped_or_removed() {
    if !is_root() {
        return;
    }
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let engine = fixture.engine();
        for (name, lie) in LIES {
            for removes in [false, true] {
                let id = fixture.start(&words.service(name, &Program::Tick)).await;
                let process = fixture.process(&id);
                lie(&fixture.container(&id).join(STATE), fixture.state_of(&id));
                if !removes {
                    engine.stop_container(&id, Duration::ZERO).await.unwrap();
                    assert!(!process.is_alive(), "{name}");
                }
                engine.remove_container(&id).await.unwrap();
                assert!(!process.is_alive(), "{name}");
            }
        }
    });
}

#[test]
fn the_next_container_of_a_service_survives_the_end_of_one_that_hides() {
    if !is_root() {
        return;
    }
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let label = fixture.ownership().branding.label("service-name");
        let mut ids = Vec::new();
        for name in ["web_1", "web_2"] {
            let mut service = words.service(name, &Program::Tick);
            service.config.labels.insert(label.clone(), "web".into());
            ids.push(fixture.start(&service).await);
        }
        let (old, new) = (fixture.process(&ids[0]), fixture.process(&ids[1]));
        assert_eq!(old.uid(), new.uid());
        let path = fixture.container(&ids[0]).join(STATE);
        write(&path, &State::created());
        let engine = fixture.engine();
        engine.remove_container(&ids[0]).await.unwrap();
        assert!(!old.is_alive());
        assert!(new.is_alive());
    });
}
