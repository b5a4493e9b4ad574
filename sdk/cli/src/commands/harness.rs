//! `harness`: the device of one test of `supervisor-testing`, whose crate `protocol` describes the messages between the
//! two. It runs until its standard input ends, so it does not outlive the test.

mod drained_body;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use plugin_test_host::protocol::{ProxyAnswer, ProxyCall, ProxyError};
use plugin_test_host::{CallerScope, EmbeddedHost, RunningHost};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use supervisor_testing::protocol::{
    CALLER, Command, GpioState, HARNESS, Setup, StartOutcome, UpdateLocks, VERSION,
};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::UnixListener;
use tracing::Level;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::compiler;
use crate::log_filter;
use crate::output::has_colours;
use drained_body::DrainedBody;

/// The maximum length of a command, in bytes.
const COMMAND: usize = 16 << 20;

/// The device of the test.
struct HarnessDevice {
    host: RunningHost,
    /// Whether the test has stopped it.
    is_stopped: AtomicBool,
}

pub(crate) async fn run(socket: &Path) -> Result<ExitCode> {
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt()
            .with_ansi(has_colours())
            .with_writer(std::io::stderr)
            .with_max_level(Level::INFO)
            .finish()
            .with(log_filter::for_authors())
            .init();
    }
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).await?;
    let host = match start(&line).await {
        Ok(host) => host,
        Err(error) => {
            say(&StartOutcome::Failed(format!("{error:#}")))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let listener = UnixListener::bind(socket)
        .with_context(|| format!("cannot listen at `{}`", socket.display()))?;
    say(&StartOutcome::Ready { root: host.root() })?;
    let device = Arc::new(HarnessDevice {
        host,
        is_stopped: AtomicBool::new(false),
    });
    let router = Router::new().fallback({
        let device = Arc::clone(&device);
        move |request| {
            let device = Arc::clone(&device);
            async move { device.answer(request).await }
        }
    });
    let mut rest = Vec::new();
    tokio::select! {
        ended = async { axum::serve(listener, router).await } => ended?,
        ended = input.read_to_end(&mut rest) => drop(ended?),
    }
    device.host.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Writes a line for the test to standard output.
fn say(started: &StartOutcome) -> Result<()> {
    let line = serde_json::to_string(started)?;
    writeln!(std::io::stdout(), "{line}").context("the test does not read the answer")
}

async fn start(line: &str) -> Result<RunningHost> {
    let version = serde_json::from_str::<Value>(line).ok();
    let version = version.and_then(|setup| setup["version"].as_u64());
    ensure!(
        version == Some(VERSION.into()),
        "this `supervisor-plugin` and the crate `supervisor-testing` are of different versions: update both"
    );
    let setup: Setup = serde_json::from_str(line).context("the device of the test is invalid")?;
    let cache = compiler::compiled_code_folder()?;
    let host = EmbeddedHost::new(setup).compiler(compiler::program()?);
    host.code_cache(cache).try_start().await
}

impl HarnessDevice {
    async fn answer(&self, request: Request) -> Response {
        let is_command = request
            .headers()
            .get(header::HOST)
            .is_some_and(|host| host == HARNESS);
        let answered = if is_command {
            self.command(request).await
        } else {
            self.call(request).await
        };
        answered
            .unwrap_or_else(|error| (StatusCode::BAD_REQUEST, format!("{error:#}")).into_response())
    }

    async fn command(&self, request: Request) -> Result<Response> {
        let body = axum::body::to_bytes(request.into_body(), COMMAND).await?;
        let command: Command = serde_json::from_slice(&body).context("no such command")?;
        if command == Command::Stop {
            self.is_stopped.store(true, SeqCst);
        } else {
            self.ensure_running()?;
        }
        carry_out(&self.host, command).await
    }

    /// Sends a request to a plugin.
    async fn call(&self, mut request: Request) -> Result<Response> {
        self.ensure_running()?;
        let headers = request.headers_mut();
        headers.remove(header::HOST);
        let caller = headers.remove(CALLER).context("the caller is missing")?;
        let caller: supervisor_testing::CallerScope = serde_json::from_slice(caller.as_bytes())?;
        let caller: CallerScope = same(&caller)?;
        let request = request.map(|body| Body::new(DrainedBody(body)));
        Ok(self.host.call_by(caller, request).await.map(Body::new))
    }

    fn ensure_running(&self) -> Result<()> {
        let is_stopped = self.is_stopped.load(SeqCst);
        ensure!(!is_stopped, "the device has been stopped");
        Ok(())
    }
}

async fn carry_out(host: &RunningHost, command: Command) -> Result<Response> {
    match command {
        Command::Identify => json(&host.identify()),
        Command::Publish(event) => json(&host.publish(&event)),
        Command::Postponement(update) => json(&host.postponement(&update).await),
        Command::JudgeRelease(release) => json(&host.judge_release(&release).await),
        Command::BootSettings => json_or_text(host.boot_settings().await),
        Command::BootConfig(settings, true) => json_or_text(host.set_boot_config(settings).await),
        Command::BootConfig(settings, false) => {
            json_or_text(host.compare_boot_config(settings).await)
        }
        Command::OsStatus => json_or_text(host.os_status().await),
        Command::UpdateOs(call) => json_or_text(host.update_os(call).await),
        Command::ProxyRedirector(call) => proxy_redirector(host, call).await,
        Command::Metrics(plugin) => json(&host.metrics(&plugin)),
        Command::Report => json(&host.report()),
        Command::RestartedUnits => json(&host.restarted_units()),
        Command::HoldUpdateLock(message) => json(&match message {
            Some(message) => host.hold_update_lock(&message),
            None => host.release_update_lock(),
        }),
        Command::UpdateLocks => {
            let (times, forced) = host.update_locks_taken();
            json(&UpdateLocks {
                times,
                forced,
                are_held: host.update_locks_are_held(),
            })
        }
        Command::GpioLine(line) => json(&host.gpio().is_on(&line).map(|is_on| GpioState {
            is_on,
            is_waited_for: host.gpio().is_waited_for(&line),
        })),
        Command::DriveGpio(line, on) => json(&host.gpio().drive(&line, on)),
        Command::SetI2cRegisters(bus, address, register, bytes) => {
            json(&host.i2c().set(&bus, address, register, &bytes))
        }
        Command::I2cRegister(bus, address, register) => {
            json(&host.i2c().register(&bus, address, register))
        }
        Command::Stop => json(&host.stop().await),
    }
}

/// Calls a function of `proxy-redirector`, and answers what that function returns.
async fn proxy_redirector(host: &RunningHost, call: ProxyCall) -> Result<Response> {
    match host.call_proxy_redirector(call).await {
        Ok(ProxyAnswer::State(state)) => json(&Ok::<_, ProxyError>(state)),
        Ok(ProxyAnswer::Addresses(addresses)) => json(&Ok::<_, ProxyError>(addresses)),
        Ok(ProxyAnswer::Done) => json(&Ok::<_, ProxyError>(())),
        Err(error) => json(&Err::<(), _>(error)),
    }
}

fn json(answer: &impl Serialize) -> Result<Response> {
    Ok(axum::Json(serde_json::to_value(answer)?).into_response())
}

/// Answers with a result whose error is only shown to people.
fn json_or_text<T: Serialize>(result: Result<T, impl ToString>) -> Result<Response> {
    json(&result.map_err(|error| error.to_string()))
}

/// Converts a value of `supervisor-testing` to the host's own type, which has the same names and fields.
fn same<T: DeserializeOwned>(value: &impl Serialize) -> Result<T> {
    let value = serde_json::to_value(value)?;
    serde_json::from_value(value).context("the host has another type of that name")
}

#[cfg(test)]
mod tests {
    use plugins::CallerScope as HostsCaller;
    use supervisor_testing::CallerScope;

    use super::*;

    #[test]
    fn the_caller_that_a_test_names_is_one_that_the_host_knows() {
        let service = CallerScope::Service {
            app_id: 7,
            service: "press".to_owned(),
        };
        for caller in [CallerScope::DeviceKey, CallerScope::LocalMode, service] {
            let hosts: HostsCaller = same(&caller).unwrap();
            assert_eq!(same::<CallerScope>(&hosts).unwrap(), caller);
        }
    }
}
