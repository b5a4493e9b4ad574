//! The device's transparent proxy, implemented with redsocks: the stock provider of `proxy-redirector`.
//!
//! The configuration is `redsocks.conf` and `no_proxy` (one address or subnet per line) in `system-proxy/`
//! of the boot partition, where programs of the host look for them (docs/spec/device.md#proxy-files). Blocks
//! and fields of the file that this plugin does not know are kept.

mod conf;
mod redirection;

use std::path::Path;

use supervisor_sdk::proxy_redirector::check::is_subnet;
use supervisor_sdk::proxy_redirector::{Error, Provider, Redirection, State};
use supervisor_sdk::{folder, log, plugin, units};

plugin! {
    capabilities: {
        files => "keeps the proxy's configuration where the host looks for it",
        units => "restarts the host's programs that read it",
    }
    proxy_redirector => Redsocks,
    // One at a time: two would write to the same file.
    limits: { concurrency: 1, wall_ms: 30000 }
}

/// The folder, as set by the policy.
const FOLDER: &str = "/system-proxy";
const CONFIGURATION: &str = "redsocks.conf";
const NO_PROXY: &str = "no_proxy";

/// The programs that read the files: the one that sets the firewall's rules, then the redirector.
const READERS: [&str; 2] = ["platform-proxy-config.service", "redsocks.service"];
/// A host that has this unit watches the files and restarts these programs itself: they are part of the
/// unit.
const WATCHER: &str = "redsocks-conf.target";

struct Redsocks;

impl Provider for Redsocks {
    async fn get() -> Result<State, Error> {
        let text = match text(CONFIGURATION) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(State::Direct),
            Err(why) => return Ok(unusable(why)),
        };
        Ok(match redirection::read(&parsed(&text)) {
            Ok(redirection) => State::Redirected(redirection),
            Err(why) => unusable(format!("`{CONFIGURATION}` cannot be used: {why}")),
        })
    }

    async fn set(target: Option<Redirection>) -> Result<(), Error> {
        let folder = Path::new(FOLDER);
        let Some(target) = target else {
            return folder::remove(folder, CONFIGURATION).map_err(Error::Failed);
        };
        redirection::check(&target).map_err(Error::Invalid)?;
        let before = text(CONFIGURATION).map_err(Error::Failed)?;
        let mut conf = parsed(&before.unwrap_or_default());
        redirection::write(&mut conf, &target);
        let text = conf.write();
        folder::write(folder, CONFIGURATION, text.as_bytes()).map_err(Error::Failed)
    }

    async fn no_proxy() -> Result<Vec<String>, Error> {
        let text = text(NO_PROXY).map_err(Error::Failed)?;
        Ok(addresses(&text.unwrap_or_default()))
    }

    async fn set_no_proxy(addresses: Vec<String>) -> Result<(), Error> {
        let folder = Path::new(FOLDER);
        if let Some(other) = addresses.iter().find(|address| !is_subnet(address)) {
            let text = format!("`{other}` is neither an address nor a subnet");
            return Err(Error::Invalid(text));
        }
        if addresses.is_empty() {
            return folder::remove(folder, NO_PROXY).map_err(Error::Failed);
        }
        let text = addresses.join("\n") + "\n";
        folder::write(folder, NO_PROXY, text.as_bytes()).map_err(Error::Failed)
    }

    async fn apply() -> Result<(), Error> {
        let failed = |error: units::Error| Error::Failed(error.to_string());
        if units::state(WATCHER).await.map_err(failed)?.load == "loaded" {
            return Ok(());
        }
        for unit in READERS {
            match units::restart(unit).await {
                Err(units::Error::NotFound(why)) => log::warn(why),
                done => done.map_err(failed)?,
            }
        }
        Ok(())
    }
}

/// Reads the text of a file; `None` if there is no such file. Invalid UTF-8 is replaced.
fn text(name: &str) -> Result<Option<String>, String> {
    let bytes = folder::read(Path::new(FOLDER), name)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn unusable(why: String) -> State {
    log::warn(&why);
    State::Unusable(why)
}

fn parsed(text: &str) -> conf::Conf {
    let conf::ParsedConf { conf, warnings } = conf::parse(text);
    for warning in warnings {
        log::warn(format_args!("`{CONFIGURATION}`: {warning}"));
    }
    conf
}

/// Returns the lines that are not empty.
fn addresses(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}
