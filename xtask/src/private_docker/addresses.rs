//! The private engine's bridge and addresses: a range that nothing else on this machine uses.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::quietly;

/// `10.SECOND.0.0/16`. The supervisor's own bridge is in 10.114.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) second: u8,
    pub(super) bridge: String,
}

impl Addresses {
    /// Reserves a free range and creates the bridge; [`Addresses::release`] undoes it.
    pub(super) fn take(folder: &Path) -> Result<Self> {
        let used =
            quietly("ip", &["-o", "-4", "address", "show"])? + &quietly("ip", &["route", "show"])?;
        let second = (160..250_u8)
            .find(|second| {
                !used.contains(&format!(" 10.{second}."))
                    && !used.starts_with(&format!("10.{second}."))
            })
            .context("no free range of addresses for the private Docker engine")?;
        let addresses = Addresses {
            second,
            bridge: format!("suptest{second}"),
        };
        fs::write(folder.join("addresses"), second.to_string())?;
        let bridge = &addresses.bridge;
        quietly("ip", &["link", "add", bridge, "type", "bridge"])?;
        let gateway = format!("10.{second}.255.1/24");
        quietly("ip", &["address", "add", &gateway, "dev", bridge])?;
        quietly("ip", &["link", "set", bridge, "up"])?;
        if forwarding_is_closed() {
            addresses.rule("-I")?;
        }
        Ok(addresses)
    }

    /// Returns the range that [`Addresses::take`] reserved for `folder`, even in another process.
    pub(super) fn load(folder: &Path) -> Option<Self> {
        let second = fs::read_to_string(folder.join("addresses"))
            .ok()?
            .parse()
            .ok()?;
        Some(Addresses {
            second,
            bridge: format!("suptest{second}"),
        })
    }

    /// Returns the pool of addresses for the networks that the engine creates.
    pub(super) fn pool(&self) -> String {
        format!("base=10.{}.0.0/17,size=24", self.second)
    }

    /// Removes the rule and every bridge that has an address of the range.
    pub(super) fn release(&self) {
        if forwarding_is_closed() {
            let _ = self.rule("-D");
        }
        let links = quietly("ip", &["-o", "-4", "address", "show"]).unwrap_or_default();
        for line in links.lines() {
            let mut words = line.split_whitespace();
            let (link, address) = (words.nth(1), words.nth(1));
            if let (Some(link), Some(address)) = (link, address)
                && address.starts_with(&format!("10.{}.", self.second))
            {
                let _ = quietly("ip", &["link", "delete", link]);
            }
        }
    }

    /// Adds or removes the rule that allows traffic within the range: if another Docker engine has disabled forwarding,
    /// bridged traffic is blocked too.
    fn rule(&self, verb: &str) -> Result<String> {
        let range = format!("10.{}.0.0/16", self.second);
        quietly(
            "iptables",
            &[verb, "FORWARD", "-s", &range, "-d", &range, "-j", "ACCEPT"],
        )
    }
}

fn forwarding_is_closed() -> bool {
    quietly("iptables", &["-S", "FORWARD"]).is_ok_and(|rules| rules.contains("-P FORWARD DROP"))
}
