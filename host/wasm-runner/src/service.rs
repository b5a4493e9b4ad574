//! The life of a service's process: start, runs of the service, end.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use confinement::Report;
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, OFlags, flock};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};
use wasm_service::log_file::LogFile;
use wasm_service::record::{
    self, LAUNCH, LOCK, Launch, NOT_STARTED, Network, OwnNetwork, STATE, State, near,
};
use wasm_service::{HealthCheck, RestartBackoff, StartOutcome, starts_again};
use wasmtime::Engine;

use crate::confine::{confine, leave_session, settle};
use crate::folders::prepare_folders;
use crate::guest::{Guest, GuestExit};
use crate::health::{self, ServicePorts};
use crate::ownership;
use crate::pace::{Activity, PacedGuest};
use crate::ports::PortMap;
use crate::publish::{self, PublishedPort, Target};
use crate::routes::Routes;
use crate::rules::Rules;
use crate::state_file::{SharedStateFile, StateFile};
use crate::stdio::{Input, ServiceLog};

/// How long a new process waits for the previous one to end.
const LOCK_WAIT: Duration = Duration::from_secs(20);

pub(crate) fn run(folder: &Path) -> ExitCode {
    match Process::start(&near(folder)).map_err(StartOutcome::from) {
        Ok(process) => process.serve(),
        Err(outcome) => {
            report(&outcome);
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// Why a process does not serve the container.
enum StartError {
    AlreadyServed,
    DoesNotLoad(wasmtime::Error),
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for StartError {
    fn from(error: anyhow::Error) -> Self {
        StartError::Failed(error)
    }
}

impl From<StartError> for StartOutcome {
    fn from(error: StartError) -> Self {
        match error {
            StartError::AlreadyServed => StartOutcome::AlreadyServed,
            StartError::DoesNotLoad(error) => StartOutcome::DoesNotLoad(format!("{error:#}")),
            StartError::Failed(error) => StartOutcome::Failed(format!("{error:#}")),
        }
    }
}

/// Returns why compiled code was not loaded. An error of the system, such as a lack of descriptors, says nothing about the
/// code: compiling it again would not help, and it would be remembered as unusable. A file that is missing is compiled
/// again.
fn load_error(error: wasmtime::Error) -> StartError {
    let is_of_system = error.chain().any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| {
            error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound
        })
    });
    if is_of_system {
        let error = anyhow::Error::from(error);
        StartError::Failed(error.context("failed to load the compiled code"))
    } else {
        StartError::DoesNotLoad(error)
    }
}

/// A process whose service is ready to run.
struct Process {
    runs: Runs,
    /// Signals that no further run is to follow.
    stop: watch::Sender<bool>,
    engine: Engine,
    published: Vec<PublishedPort>,
    target: Option<Target>,
    health: Option<(HealthCheck, ServicePorts)>,
    main: Runtime,
    /// The descriptors by which the service's folders are reached.
    _open_folders: Vec<OwnedFd>,
    /// Held until the process ends.
    _lock: File,
}

impl Process {
    fn start(folder: &Path) -> Result<Self, StartError> {
        // Before the lock, for which it may wait some time.
        leave_session();
        let lock = lock(folder)?;
        let launch: Launch = record::read(&folder.join(LAUNCH))
            .context("failed to read the record of what to run")?
            .context("there is no record of what to run")?;
        let settled = settle(&launch);
        // The state file has one writer, and from here on it is this process.
        let mut state = StateFile::open(folder)?;
        let log = ServiceLog::new(LogFile::open(folder));
        note_panics(log.clone());
        let prepared = Process::prepare(folder, launch, settled, log, lock);
        prepared.inspect_err(|error| {
            // If the component does not load, the engine has it compiled again. Until then the container's state is
            // unchanged: if the engine ends in between, it finds a service to start.
            if let StartError::Failed(error) = error {
                state.fail(error);
            }
        })
    }

    fn prepare(
        folder: &Path,
        mut launch: Launch,
        settled: Report,
        log: ServiceLog,
        lock: File,
    ) -> Result<Self, StartError> {
        let open_folders = prepare_folders(&mut launch)?;
        let launch = Arc::new(launch);
        let main = runtime().context("failed to start")?;
        let ports = Arc::new(PortMap::new(folder));
        let (network, target) = match &launch.network {
            Network::Own(network) => {
                let (address, ports) = (network.address, ports.clone());
                (network.clone(), Some(Target { address, ports }))
            }
            Network::None | Network::Host => (OwnNetwork::unreachable(), None),
        };
        let routes = Routes::open().inspect_err(|error| {
            log.note(&format!(
                "this service cannot reach other machines: failed to ask the kernel for routes ({error})"
            ));
        });
        let rules = Arc::new(Rules::new(network, ports, routes.ok()));
        let mut published = Vec::new();
        for mapping in &launch.ports {
            let socket = main.block_on(publish::take(mapping));
            let socket = socket.map_err(|message| anyhow!(message))?;
            if mapping.host_port.is_none()
                && let Ok(address) = socket.local_address()
            {
                let port = mapping.container_port;
                log.note(&format!("port {port} is published at {address}"));
            }
            published.push(socket);
        }
        let engine = Engine::new(&sandbox::engine_config(sandbox::Profile::Service))
            .map_err(anyhow::Error::from)
            .context("failed to set up the engine")?;
        let component = sandbox::deserialize(&engine, &launch.component).map_err(load_error)?;
        let guest = Guest::link(engine.clone(), &component, launch.clone(), rules)?;
        let mut state = StateFile::open(folder)?;
        if let Some(user) = launch.user {
            ownership::give_records(folder, user)
                .context("failed to make the service's user the owner of its records")?;
        }
        // Everything that needs rights is open, and nothing of the service has run.
        state.state.confinement = Some(confine(&launch, folder, settled)?);
        let (stop, stopping) = watch::channel(false);
        let ports = match (&launch.network, &target) {
            (_, Some(target)) => Some(ServicePorts::Own(target.clone())),
            (Network::Host, None) => Some(ServicePorts::Host),
            _ => None,
        };
        let health = launch.health_check.clone().zip(ports);
        let runs = Runs {
            launch,
            guest,
            activity: Arc::default(),
            log,
            state: Arc::new(Mutex::new(state)),
            stopping,
        };
        Ok(Process {
            runs,
            stop,
            engine,
            published,
            target,
            health,
            main,
            _open_folders: open_folders,
            _lock: lock,
        })
    }

    fn serve(self) -> ExitCode {
        let runs = self.runs;
        let (activity, state) = (runs.activity.clone(), runs.state.clone());
        let (ended, end) = oneshot::channel();
        let spawned = thread::Builder::new().name("guest".into()).spawn(move || {
            // The process ends with the service, even if this thread has not finished.
            let _ = ended.send(runs.run_to_the_end());
        });
        if let Err(error) = spawned {
            let failure = format!("failed to start a thread: {error}");
            report(&StartOutcome::Failed(failure));
            return ExitCode::from(NOT_STARTED);
        }
        let exit_code = self.main.block_on(async {
            let mut terminations = signal(SignalKind::terminate()).ok();
            if let Some(target) = self.target {
                for published in self.published {
                    tokio::spawn(published.forward(target.clone()));
                }
            }
            if let Some((check, ports)) = self.health {
                tokio::spawn(health::keep_checking(check, ports, state));
            }
            let stops = async {
                match &mut terminations {
                    Some(terminations) => terminations.recv().await,
                    None => std::future::pending().await,
                };
                let _ = self.stop.send(true);
                std::future::pending::<Infallible>().await
            };
            tokio::select! {
                exit_code = end => exit_code.unwrap_or(crate::guest::TRAPPED),
                never = stops => match never {},
                never = activity.tick(&self.engine) => match never {},
            }
        });
        self.main.shutdown_background();
        ExitCode::from(u8::try_from(exit_code & 0xff).unwrap_or(u8::MAX))
    }
}

/// The runs of a service, on their own thread.
struct Runs {
    launch: Arc<Launch>,
    guest: Guest,
    activity: Arc<Activity>,
    log: ServiceLog,
    state: SharedStateFile,
    stopping: watch::Receiver<bool>,
}

impl Runs {
    fn run_to_the_end(mut self) -> i64 {
        match runtime() {
            Ok(runtime) => runtime.block_on(self.all()),
            Err(error) => {
                self.state.lock().fail(&error.into());
                i64::from(NOT_STARTED)
            }
        }
    }

    async fn all(&mut self) -> i64 {
        let mut backoff = RestartBackoff::default();
        let mut first = true;
        loop {
            let begun = Instant::now();
            self.state.lock().runs(self.launch.health_check.is_some());
            if std::mem::take(&mut first) {
                report(&StartOutcome::Ready);
            }
            let input = Input(self.stopping.clone());
            let run = self.guest.run(input, &self.log);
            let GuestExit { exit_code, failure } =
                PacedGuest::new(run, self.activity.clone(), self.launch.nano_cpus).await;
            self.log.end_lines();
            if let Some(failure) = failure {
                self.log.note(&failure);
            }
            let stops = *self.stopping.borrow();
            if stops || !starts_again(self.launch.restart, exit_code) {
                self.state.lock().exited(exit_code);
                return exit_code;
            }
            self.state.lock().waits(exit_code);
            if self.stops_within(backoff.after(begun.elapsed())).await {
                self.state.lock().exited(exit_code);
                return exit_code;
            }
        }
    }

    async fn stops_within(&mut self, wait: Duration) -> bool {
        let mut input = Input(self.stopping.clone());
        tokio::time::timeout(wait, input.closed()).await.is_ok()
    }
}

/// Takes the container's lock. Only one process serves a container, however often it is started. The previous one may
/// not have ended completely, though its service has.
fn lock(folder: &Path) -> Result<File, StartError> {
    // The service may write into this folder: links are not followed, and pipes not waited for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits() as i32)
        .open(folder.join(LOCK))
        .context("failed to open the container's lock")?;
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(error) => {
                let failed = anyhow::Error::from(error).context("failed to lock the container");
                return Err(failed.into());
            }
        }
        let state = record::read::<State>(&folder.join(STATE)).ok().flatten();
        if state.is_some_and(|state| state.is_served()) {
            return Err(StartError::AlreadyServed);
        }
        if Instant::now() > deadline {
            return Err(anyhow!("another process holds the container's lock").into());
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Reports to the engine, if it still listens, and closes the pipe to it.
fn report(outcome: &StartOutcome) {
    let mut output = io::stdout();
    let _ = writeln!(output, "{outcome}");
    let _ = output.flush();
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// Writes panics of ours into the service's log.
fn note_panics(log: ServiceLog) {
    std::panic::set_hook(Box::new(move |panic| {
        log.note(&format!("the service's process failed: {panic}"));
    }));
}

/// Creates the runtime of one thread: small, and independent of the other's.
fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        // For the system's resolver.
        .max_blocking_threads(4)
        .thread_keep_alive(Duration::from_secs(1))
        .build()
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn an_error_of_the_system_says_nothing_about_the_code() {
        let of = |number: Errno| {
            let error = io::Error::from(number);
            load_error(wasmtime::Error::from(error).context("failed to read the code"))
        };
        for number in [Errno::MFILE, Errno::NFILE, Errno::IO, Errno::NOMEM] {
            assert!(matches!(of(number), StartError::Failed(_)), "{number:?}");
        }
        for error in [
            of(Errno::NOENT),
            load_error(wasmtime::Error::msg("it is of another version")),
        ] {
            assert!(matches!(error, StartError::DoesNotLoad(_)));
        }
    }
}
