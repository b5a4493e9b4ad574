//! `bench`: measures how long calls of the plugin take, without sockets.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use http::Request;
use plugin_test_host::{CallerScope, RunningHost};
use serde_json::json;

use crate::arguments::Bench;
use crate::commands::trial::Trial;
use crate::component::Component;
use crate::device_file::DEVICE;
use crate::output::Output;

/// The request to send.
struct Call {
    method: http::Method,
    path: String,
    body: Vec<u8>,
}

impl Call {
    /// Parses `GET /v3/hello/Ada`; the path may have a query.
    fn parse(text: &str, body: Option<&str>) -> Result<Call> {
        let Some((method, path)) = text.split_once(' ') else {
            bail!(
                "`{text}` is not a request: give the method and the path, for example `GET /v3/hello/Ada`"
            );
        };
        let method = plugin_manifest::parse_method(method).map_err(anyhow::Error::msg)?;
        Ok(Call {
            method,
            path: path.trim().to_owned(),
            body: body.unwrap_or_default().as_bytes().to_vec(),
        })
    }

    /// Sends the request, and returns how long it took.
    ///
    /// # Errors
    /// The answer is an error, or ends early.
    async fn make(&self, host: &RunningHost) -> Result<Duration> {
        let request = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header("content-type", "application/json")
            .body(self.body.clone())
            .with_context(|| format!("`{}` is not a path", self.path))?;
        let started = Instant::now();
        let answer = host.try_send_by(CallerScope::DeviceKey, request).await?;
        let took = started.elapsed();
        ensure!(
            answer.status.is_success(),
            "the answer is {} {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        Ok(took)
    }
}

pub(crate) async fn run(arguments: &Bench, output: &Output) -> Result<ExitCode> {
    let call = Call::parse(&arguments.request, arguments.body.as_deref())?;
    let component = Component::load(&arguments.component, output)?;
    let project = &arguments.component.project.project;
    let trial = Trial::on(arguments.device.as_deref(), &project.join(DEVICE))?;
    let host = trial.start(&component).await?;
    let before = resident_kib();
    let first = call.make(&host).await?;
    let started = Instant::now();
    let mut times = measured(&Arc::new(host), &Arc::new(call), arguments).await?;
    let elapsed = started.elapsed();
    times.sort_unstable();
    let at = |share: usize| {
        let place = (times.len() * share / 100).min(times.len().saturating_sub(1));
        times.get(place).copied().unwrap_or_default()
    };
    let (median, slow) = (at(50), at(99));
    let a_second = f64::from(arguments.calls) / elapsed.as_secs_f64();
    let memory = resident_kib().saturating_sub(before);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    output.result(
        &format!(
            "{}  p50 {:.2} ms  p99 {:.2} ms  first {:.2} ms  {a_second:.0} a second  +{:.1} MiB of memory",
            arguments.request,
            milliseconds(median),
            milliseconds(slow),
            milliseconds(first),
            memory as f64 / 1024.0,
        ),
        &json!({
            "request": arguments.request, "calls": arguments.calls, "at_a_time": arguments.at_a_time,
            "p50_ms": milliseconds(median), "p99_ms": milliseconds(slow), "first_ms": milliseconds(first),
            "a_second": a_second, "memory_kib": memory,
        }),
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns the times of all calls.
async fn measured(
    host: &Arc<RunningHost>,
    call: &Arc<Call>,
    arguments: &Bench,
) -> Result<Vec<Duration>> {
    let remaining = Arc::new(AtomicU32::new(arguments.calls));
    let callers = (0..arguments.at_a_time).map(|_| {
        let (host, call, remaining) = (Arc::clone(host), Arc::clone(call), Arc::clone(&remaining));
        tokio::spawn(async move {
            let mut times = Vec::new();
            let takes_one = |count: u32| count.checked_sub(1);
            while remaining
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, takes_one)
                .is_ok()
            {
                times.push(call.make(&host).await?);
            }
            anyhow::Ok(times)
        })
    });
    let mut times = Vec::new();
    for caller in futures::future::join_all(callers).await {
        times.extend(caller??);
    }
    Ok(times)
}

/// Returns the memory of this process in KiB, or 0 if the system does not report it.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|text| text.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_method_and_a_path() {
        let call = Call::parse("POST /v3/a?b=c", Some("{}")).unwrap();
        assert_eq!(
            (call.method.as_str(), call.path.as_str()),
            ("POST", "/v3/a?b=c")
        );
        for text in ["/v3/a", "FETCH /v3/a"] {
            assert!(Call::parse(text, None).is_err(), "{text}");
        }
    }
}
