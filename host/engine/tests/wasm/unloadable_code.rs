//! Compiled code that a service's process cannot load, because it was damaged or compiled for another engine: it is
//! deleted and compiled again, once, and then the service runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use engine::wasm::{Wasm, WasmConfig};
use engine::{Containers as _, Images as _};
use model::{ContainerId, ImageRef, RestartPolicy};
use rustix::process::{Pid, Signal, kill_process};
use wasm_service::StartOutcome;
use wasm_service::record::Status;

use crate::fixture::{WasmFixture, surroundings, test};
use crate::suite::{Fixture, Program, create_on, eventually};

/// An engine with a compiler that compiles for another engine if a test requests it.
struct Device {
    fixture: Arc<WasmFixture>,
    wasm: Wasm,
}

impl Device {
    async fn new(fixture: Arc<WasmFixture>) -> Self {
        let folder = fixture.folder().to_owned();
        let compiler = folder.join("compiler");
        let real = surroundings().unwrap().0.join("bin/supervisor-compile");
        // Its arguments begin with `--profile service`.
        let script = format!(
            "#!/bin/sh\ncd {}\necho x >> compilations\n\
             if [ -e never ] || rm once 2>/dev/null; then shift 2; set -- --profile plugin \"$@\"; fi\n\
             exec {} \"$@\"\n",
            folder.display(),
            real.display()
        );
        fs::write(&compiler, script).unwrap();
        fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
        let limits = compiled_code::Limits::default();
        let cache = compiled_code::Cache::new(folder.join("compiled"), compiler, limits).unwrap();
        let config = WasmConfig {
            cache,
            ..fixture.config()
        };
        fixture.close();
        let wasm = Wasm::open(config, fixture.ownership()).await.unwrap();
        Device { fixture, wasm }
    }

    /// Sets whether code that is compiled from now on loads: `once` not the next time, `never`
    /// never.
    fn mark(&self, file: &str) {
        fs::write(self.fixture.folder().join(file), "").unwrap();
    }

    fn compilations(&self) -> usize {
        let lines = fs::read_to_string(self.fixture.folder().join("compilations"));
        lines.map_or(0, |lines| lines.lines().count())
    }

    /// The compiled file, of which there must be exactly one.
    fn compiled(&self) -> PathBuf {
        let listing = fs::read_dir(self.fixture.folder().join("compiled")).unwrap();
        let files = listing.map(|entry| entry.unwrap().path());
        let mut files = files.filter(|path| path.extension().is_some_and(|end| end == "cwasm"));
        let file = files.next().unwrap();
        assert_eq!(files.next(), None);
        file
    }

    async fn create(&self, name: &str) -> ContainerId {
        let words: &dyn Fixture = &*self.fixture;
        let mut service = words.service(name, &Program::Tick);
        service.config.restart = RestartPolicy::Always;
        create_on(&self.wasm, &service).await.unwrap()
    }

    async fn pull(&self) {
        let image: ImageRef = self.fixture.image();
        let pulled = self.wasm.pull_image(&image, None, &|_| {}).await;
        pulled.unwrap();
    }

    async fn start(&self, id: &ContainerId) {
        self.wasm.start_container(id).await.unwrap();
        assert_eq!(self.fixture.state_of(id).status, Status::Running);
    }

    /// Kills the process of a service, and waits for its replacement.
    async fn restart(&self, id: &ContainerId) {
        let before = self.fixture.process(id);
        kill_process(Pid::from_raw(before.pid).unwrap(), Signal::KILL).unwrap();
        eventually("another process serves it", async || {
            let state = self.fixture.state_of(id);
            let is_new = state.process.is_some_and(|p| p != before && p.is_alive());
            (is_new && state.status == Status::Running).then_some(())
        })
        .await;
        assert_eq!(self.fixture.state_of(id).error, None);
    }
}

/// Replaces `file` with a damaged copy. A process that runs the code has it mapped: if the bit
/// flipped in that mapping, the process would die before the test kills it.
fn flip_a_bit(file: &Path) {
    let damaged = file.with_extension("damaged");
    fs::copy(file, &damaged).unwrap();
    let mut code = fs::read(file).unwrap();
    let middle = code.len() / 2;
    code[middle] ^= 0x10;
    fs::write(&damaged, code).unwrap();
    fs::rename(damaged, file).unwrap();
}

#[test]
fn a_flipped_bit_in_a_services_compiled_code_heals_on_start_and_on_restart() {
    test(async |fixture| {
        let device = Device::new(fixture).await;
        device.pull().await;
        assert_eq!(device.compilations(), 1);
        let sound = fs::read(device.compiled()).unwrap();

        flip_a_bit(&device.compiled());
        let id = device.create("damaged").await;
        device.start(&id).await;
        assert_eq!(device.compilations(), 2);

        flip_a_bit(&device.compiled());
        device.restart(&id).await;
        assert_eq!(device.compilations(), 3);
        assert_eq!(fs::read(device.compiled()).unwrap(), sound);
    });
}

#[test]
fn code_that_does_not_load_is_compiled_again_when_a_service_starts() {
    test(async |fixture| {
        let device = Device::new(fixture).await;
        device.mark("once");
        device.pull().await;
        assert_eq!(device.compilations(), 1);
        let useless = fs::read(device.compiled()).unwrap();
        let id = device.create("useless").await;
        device.start(&id).await;
        assert_eq!(device.compilations(), 2);
        assert_ne!(fs::read(device.compiled()).unwrap(), useless);
        // The next service finds it.
        let other = device.create("other").await;
        device.start(&other).await;
        assert_eq!(device.compilations(), 2);
    });
}

#[test]
fn code_that_does_not_load_is_compiled_again_when_a_service_restarts() {
    test(async |fixture| {
        let device = Device::new(fixture).await;
        let id = device.create("useless").await;
        device.start(&id).await;
        assert_eq!(device.compilations(), 1);
        fs::remove_file(device.compiled()).unwrap();
        device.mark("once");
        device.restart(&id).await;
        assert_eq!(device.compilations(), 3);
        // It is watched as before.
        device.restart(&id).await;
        assert_eq!(device.compilations(), 3);
    });
}

#[test]
fn code_that_does_not_load_is_compiled_again_only_once() {
    test(async |fixture| {
        let device = Device::new(fixture).await;
        device.mark("never");
        device.pull().await;
        let id = device.create("hopeless").await;
        let error = device.wasm.start_container(&id).await.unwrap_err();
        let reason = std::error::Error::source(&error).unwrap().to_string();
        assert!(
            reason.starts_with("the compiler's output for `"),
            "{reason}"
        );
        assert!(reason.contains("does not load: "), "{reason}");
        assert!(
            reason.contains("has the same version as this program"),
            "{reason}"
        );
        assert_eq!(device.compilations(), 2);
        let state = device.fixture.state_of(&id);
        assert_eq!(state.status, Status::Created);
        assert_eq!(state.error, Some(reason));

        // The next requested start tries again, and here it helps.
        fs::remove_file(device.fixture.folder().join("never")).unwrap();
        device.start(&id).await;
        assert_eq!(device.compilations(), 3);
        assert_eq!(device.fixture.state_of(&id).error, None);
    });
}

#[test]
fn a_service_whose_code_does_not_load_is_left_as_it_was() {
    test(async |fixture| {
        let device = Device::new(fixture).await;
        let id = device.create("left").await;
        device.start(&id).await;
        let grace = std::time::Duration::ZERO;
        device.wasm.stop_container(&id, grace).await.unwrap();
        let before = device.fixture.state_of(&id);
        flip_a_bit(&device.compiled());
        // As an engine would start it that ends before it gets an answer.
        let output = Command::new(&device.fixture.config().runner)
            .args(["wasm-service", "--record"])
            .arg(device.fixture.container(&id))
            .current_dir(device.fixture.state())
            .output()
            .unwrap();
        let outcome = StartOutcome::read(&String::from_utf8(output.stdout).unwrap());
        let StartOutcome::DoesNotLoad(reason) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(reason.contains("is damaged"), "{reason}");
        assert_eq!(device.fixture.state_of(&id), before);
    });
}
