//! The host's name and the proxy of its connections: `GET` and `PATCH /v1/device/host-config`.
//!
//! What a request may say stands in [`change`], what comes of it on what is there in [`work`]. Neither
//! file nor program of the proxy is known here: that is the action `proxy-redirector`, of whichever plugin
//! provides it. Errors of PATCH are text, those of GET are JSON (docs/spec/device.md#host-config-patch).

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
    // Locks are waited for, and then the redirector.
    // A body of that size fits into the memory however it is made up.
    limits: { wall_ms: 90000, memory_mib: 32, body_kib: 128 }
}

async fn get() -> Result<Json<HostConfig>, Error> {
    let (state, no_proxy) = match redirection().await {
        // A board without a redirector has no proxy, and a name all the same.
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
            proxy: ProxyShown::of(state, no_proxy),
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
    // Again: what was there before the locks were had may be another request's by now.
    work(&change).await?.carry_out().await?;
    Ok("OK")
}

/// What is to be done about `change`, as things are now.
async fn work(change: &Change) -> Result<Work, Refusal> {
    let state = if change.needs_the_proxy() {
        proxy_redirector::get().await?
    } else {
        State::Direct
    };
    Work::of(change, &state, default_host_name).map_err(Refusal::invalid)
}

impl Work {
    /// The proxy first, since its provider may still refuse a value.
    async fn carry_out(self) -> Result<(), Refusal> {
        let applies = self.redirection.is_some() || self.no_proxy.is_some();
        if let Some(wanted) = self.redirection {
            proxy_redirector::set(wanted).await?;
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

/// The first seven characters of the device's uuid (docs/spec/device.md#host-config-patch).
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

/// A text in the characters that the proxies of clouds let through: with any other they answer an error of their own in
/// its place (docs/spec/device.md#http-text). Quotation marks become `'`, and what has no like becomes `?`.
fn proxied(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '`' | '"' => safe.push('\''),
            ';' => safe.push(','),
            // Those of a thing between braces as well.
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
        let mut schemas = plugin_test_host::schemas();
        schemas.subschema_for::<HostConfig>();
        plugin_test_host::assert_described(include_str!("../openapi.json"), schemas);
    }
}
