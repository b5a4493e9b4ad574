//! The host's name and the proxy of its connections: `GET` and `PATCH /v1/device/host-config`.
//!
//! [`change`] describes valid requests, and [`work`] their effect on the present configuration. The files and the
//! program of the proxy are not known here: they belong to the plugin that provides the action `proxy-redirector`.
//! Errors of PATCH are text, those of GET are JSON (docs/spec/device.md#host-config-patch).

mod change;
mod shown;
mod work;

use serde_json::{Map, Value};
use supervisor_sdk::proxy_redirector::{self, State};
use supervisor_sdk::update_lock::{self, AllLocks};
use supervisor_sdk::{Answer, Error, Fields, Json, Response, device, host_name, log, plugin};

use crate::change::Change;
use crate::shown::{HostConfig, NetworkShown, ProxyShown};
use crate::work::Work;

plugin! {
    capabilities: {
        proxy_redirector => "reads and writes the proxy of the device's connections",
        host_name => "reads and sets the host's name",
        update_lock => "waits with a change until no app holds an update lock",
        device => "names a host after the device's uuid if its name is reset",
    }
    routes: {
        GET "/v1/device/host-config" => get,
        PATCH "/v1/device/host-config" => patch,
    }
    openapi: "openapi.json"
    // The time covers waiting for locks and then for the redirector. A body of that size fits into the memory, whatever
    // its structure.
    limits: { wall_ms: 90000, memory_mib: 32, body_kib: 128 }
}

async fn get() -> Result<Json<HostConfig>, Error> {
    let (state, no_proxy) = match redirection().await {
        // A board without a redirector has no proxy, but it has a name.
        Err(proxy_redirector::Error::Unavailable(why)) => {
            log::debug(why);
            (State::Direct, Vec::new())
        }
        known => known.map_err(Error::unavailable)?,
    };
    let hostname = host_name::get().await.map_err(Error::unavailable)?;
    let dns = match &state {
        State::Redirected(redirection) => redirection.dns.as_ref().map(ToString::to_string),
        _ => None,
    };
    Ok(Json(HostConfig {
        network: NetworkShown {
            proxy: ProxyShown::from_state(state, no_proxy),
            hostname: hostname.unwrap_or_else(default_host_name),
            dns,
        },
    }))
}

async fn redirection() -> Result<(State, Vec<String>), proxy_redirector::Error> {
    Ok((
        proxy_redirector::get().await?,
        proxy_redirector::no_proxy().await?,
    ))
}

async fn patch(Fields(body): Fields<Map<String, Value>>) -> Result<&'static str, Refusal> {
    let change = Change::read(&body).map_err(Refusal::invalid)?;
    for ignored in &change.ignored {
        log::warn(format_args!(
            "host-config: `{ignored}` is not a known field, and was ignored"
        ));
    }
    if work(&change).await?.is_nothing() {
        return Ok("OK");
    }
    let _locks = AllLocks::acquire(change.force).await?;
    // Computed again: before the locks were taken, another request may have changed the configuration.
    work(&change).await?.carry_out().await?;
    Ok("OK")
}

/// Returns the work that `change` requires, given the present configuration.
async fn work(change: &Change) -> Result<Work, Refusal> {
    let state = if change.needs_the_proxy() {
        proxy_redirector::get().await?
    } else {
        State::Direct
    };
    Work::new(change, &state, default_host_name).map_err(Refusal::invalid)
}

impl Work {
    /// Carries out the work. The proxy comes first, since its provider may still refuse a value.
    async fn carry_out(self) -> Result<(), Refusal> {
        let applies = self.redirection.is_some() || self.no_proxy.is_some();
        if let Some(redirection) = self.redirection {
            proxy_redirector::set(redirection).await?;
        }
        if let Some(addresses) = self.no_proxy {
            proxy_redirector::set_no_proxy(addresses).await?;
        }
        if let Some(name) = self.host_name {
            host_name::set(&name).await?;
        }
        if applies {
            proxy_redirector::apply().await?;
        }
        Ok(())
    }
}

/// Returns the first seven characters of the device's uuid (docs/spec/device.md#host-config-patch).
fn default_host_name() -> String {
    device::identity().uuid.chars().take(7).collect()
}

/// An error of PATCH: a status, and text.
#[derive(Debug)]
struct Refusal {
    status: u16,
    text: String,
}

impl Refusal {
    fn invalid(text: String) -> Self {
        Refusal { status: 400, text }
    }
}

impl Answer for Refusal {
    fn answer(self) -> Result<Response, Error> {
        Ok(Response::text(proxied(&self.text)).with_status(self.status))
    }
}

/// Returns a text with only the characters that the proxies of clouds let through: a text with any other is replaced by
/// an error of the proxy (docs/spec/device.md#http-text). Quotation marks become `'`, and characters without an
/// equivalent become `?`.
fn proxied(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '`' | '"' => safe.push('\''),
            ';' => safe.push(','),
            // This also covers the spaces around braces that were removed.
            ' ' if safe.ends_with(' ') => {}
            '(' | ')' | '[' | ']' | '{' | '}' => {}
            '…' => safe.push_str("..."),
            character if character.is_ascii_alphanumeric() => safe.push(character),
            character if character.is_ascii_whitespace() => safe.push(character),
            character if ":'.?!,/-".contains(character) => safe.push(character),
            _ => safe.push('?'),
        }
    }
    safe.truncate(safe.trim_end().len());
    safe
}

impl From<proxy_redirector::Error> for Refusal {
    fn from(error: proxy_redirector::Error) -> Self {
        let invalid = matches!(error, proxy_redirector::Error::Invalid(_));
        Refusal {
            status: if invalid { 400 } else { 503 },
            text: error.to_string(),
        }
    }
}

impl From<host_name::Error> for Refusal {
    fn from(error: host_name::Error) -> Self {
        let invalid = matches!(error, host_name::Error::Invalid(_));
        Refusal {
            status: if invalid { 400 } else { 503 },
            text: error.to_string(),
        }
    }
}

impl From<update_lock::Error> for Refusal {
    fn from(error: update_lock::Error) -> Self {
        let locked = matches!(error, update_lock::Error::Locked(_));
        Refusal {
            status: if locked { 423 } else { 503 },
            text: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_the_schemas_of_what_is_answered() {
        let mut schemas = supervisor_testing::schemas();
        schemas.subschema_for::<HostConfig>();
        supervisor_testing::assert_described(include_str!("../openapi.json"), schemas);
    }
}
