//! The compose field `healthcheck` of a component. A component has no shell and no `curl`, so the test is an address
//! that the service itself serves, and the service's process checks whether it answers
//! (docs/spec/device.md#health-of-services).

use std::time::Duration;

use http::Uri;
use model::{Healthcheck, NetworkMode, ServiceConfig};
use wasm_service::{HealthCheck, HealthProbe};

/// Docker's default if a compose file sets nothing.
const INTERVAL: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRIES: u32 = 3;
/// Shorter intervals and timeouts than this cannot be intended.
const SHORTEST: Duration = Duration::from_millis(100);

/// Returns the check of a service, if it has one.
///
/// # Errors
/// Describes a valid test, if this one cannot be checked.
pub(super) fn read(config: &ServiceConfig) -> Result<Option<HealthCheck>, String> {
    let Some(check) = &config.healthcheck else {
        return Ok(None);
    };
    // Both notations of a command, each with a URL in place of the command.
    let url = match check.test.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["NONE"] => return Ok(None),
        ["CMD" | "CMD-SHELL", url] => url.trim(),
        _ => return Err(refusal(&check.test.join(" "))),
    };
    let probe = probe(url).ok_or_else(|| refusal(url))?;
    if config.network_mode == NetworkMode::None {
        return Err(
            "`healthcheck` is ignored: the service has no network to be checked over".to_owned(),
        );
    }
    Ok(Some(HealthCheck {
        probe,
        interval: duration(check.interval, INTERVAL),
        timeout: duration(check.timeout, TIMEOUT),
        start_period: start_period(check),
        retries: match check.retries.map(u32::try_from) {
            Some(Ok(retries @ 1..)) => retries,
            _ => RETRIES,
        },
    }))
}

fn refusal(test: &str) -> String {
    format!(
        "`healthcheck` is ignored: its test `{test}` is not the URL of something that the component serves, such as \
         `http://localhost:8080/health` or `tcp://localhost:5432`"
    )
}

fn probe(url: &str) -> Option<HealthProbe> {
    let url: Uri = url.parse().ok()?;
    // Only the service itself is checked: a check of another machine would be a request in the
    // service's name.
    let host = url.host()?;
    if !matches!(host, "localhost" | "127.0.0.1" | "[::1]") {
        return None;
    }
    let port = match url.authority()?.as_str().strip_prefix(host)? {
        "" => None,
        port => Some(port.strip_prefix(':')?.parse::<u16>().ok()?),
    };
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    match url.scheme_str()? {
        "http" => Some(HealthProbe::Http {
            port: port.unwrap_or(80),
            path: path.to_owned(),
        }),
        "tcp" if matches!(path, "" | "/") => Some(HealthProbe::Tcp { port: port? }),
        _ => None,
    }
}

/// Converts from nanoseconds, of which 0 means the default.
fn duration(nanoseconds: Option<i64>, default: Duration) -> Duration {
    match nanoseconds.map(u64::try_from) {
        Some(Ok(nanoseconds @ 1..)) => Duration::from_nanos(nanoseconds).max(SHORTEST),
        _ => default,
    }
}

fn start_period(check: &Healthcheck) -> Duration {
    let nanoseconds = check.start_period.map(u64::try_from);
    Duration::from_nanos(nanoseconds.and_then(Result::ok).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_what_the_service_serves_is_checked_and_nothing_else() {
        let http = |port, path: &str| {
            Some(HealthProbe::Http {
                port,
                path: path.to_owned(),
            })
        };
        for (url, expected) in [
            ("http://localhost", http(80, "/")),
            (
                "http://localhost:8080/health?deep=1",
                http(8080, "/health?deep=1"),
            ),
            ("http://127.0.0.1:1/", http(1, "/")),
            ("http://[::1]:8080/x", http(8080, "/x")),
            (
                "tcp://localhost:5432",
                Some(HealthProbe::Tcp { port: 5432 }),
            ),
            ("tcp://localhost", None),
            ("tcp://localhost:5432/x", None),
            ("https://localhost", None),
            ("http://example.com/", None),
            ("http://localhost.example.com/", None),
            ("http://user@localhost/", None),
            ("http://localhost:99999/", None),
            ("localhost:80", None),
            ("/health", None),
            ("curl -f http://localhost", None),
            ("http://localhost/ || exit 1", None),
            ("http://localhost/\r\nX: y", None),
            ("", None),
        ] {
            assert_eq!(probe(url), expected, "{url}");
        }
    }

    #[test]
    fn times_that_are_not_given_are_dockers() {
        assert_eq!(duration(None, INTERVAL), INTERVAL);
        assert_eq!(duration(Some(0), INTERVAL), INTERVAL);
        assert_eq!(duration(Some(-5), INTERVAL), INTERVAL);
        assert_eq!(duration(Some(1), INTERVAL), SHORTEST);
        assert_eq!(
            duration(Some(2_000_000_000), INTERVAL),
            Duration::from_secs(2)
        );
    }
}
