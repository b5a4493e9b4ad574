//! Facts about the device: board, operating system, addresses (docs/spec/device.md#host-facts).
//!
//! Board and operating system are read once. Addresses are read on request if the last reading is
//! old, rather than by a timer: an idle device stays idle.

mod addresses;
mod readings;

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::Branding;
use model::contracts::DeviceProperties;
use parking_lot::Mutex;
use serde::Deserialize;

use addresses::rivals_of_gateway;
pub(crate) use addresses::{Addresses, OwnAddresses};
pub(crate) use readings::{Readings, Sensors, memory_of_board};

/// How long addresses are assumed to be unchanged (docs/spec/device.md#host-facts).
const ADDRESSES_FOR: Duration = Duration::from_secs(30);
/// The longest file that describes the host, in bytes.
const LONGEST_FILE: u64 = 64 << 10;

/// The facts that do not change while the supervisor runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Board {
    /// For example `raspberrypi4-64`; `unknown` if the host does not name it.
    pub(crate) device_type: String,
    /// For example `aarch64`; `unknown` if the host does not name it.
    pub(crate) arch: String,
    /// `PRETTY_NAME`, if the host has it.
    pub(crate) os_version: Option<String>,
    /// `VARIANT_ID`, if the host has it.
    pub(crate) variant: Option<String>,
    /// `BOARD_REV`, if the host has it.
    pub(crate) revision: Option<String>,
    /// `BUILD_ID`, if the host has it.
    pub(crate) os_build: Option<String>,
    /// `ID` and `VERSION_ID`, if the host has both.
    os: Option<(String, String)>,
}

impl Board {
    /// Reads the host's description of itself. Missing or malformed parts are unknown; they do not
    /// prevent the start.
    pub(crate) fn read(device_type: &Path, host_root: &Path) -> Self {
        #[derive(Deserialize, Default)]
        struct DeviceType {
            slug: Option<String>,
            arch: Option<String>,
        }
        let described: DeviceType = read_short(device_type)
            .and_then(|text| {
                serde_json::from_str(&text)
                    .inspect_err(|error| {
                        tracing::warn!(
                            %error,
                            path = %device_type.display(),
                            "failed to parse `{}`",
                            device_type.display()
                        );
                    })
                    .ok()
            })
            .unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let os_release = ["etc/os-release", "usr/lib/os-release"]
            .iter()
            .find_map(|file| read_short(&host_root.join(file)))
            .unwrap_or_default();
        let field = |key| value_of(&os_release, key);
        Board {
            device_type: described.slug.unwrap_or_else(unknown),
            arch: described.arch.unwrap_or_else(unknown),
            os_version: field("PRETTY_NAME"),
            variant: field("VARIANT_ID"),
            revision: field("BOARD_REV"),
            os_build: field("BUILD_ID"),
            os: field("ID").zip(field("VERSION_ID")),
        }
    }

    /// Returns the properties that contracts of services are checked against.
    pub(crate) fn offers(&self, branding: &Branding) -> DeviceProperties {
        let kernel = rustix::system::uname();
        DeviceProperties {
            supervisor: branding.api_level.clone(),
            os: self.os.clone(),
            kernel: Some(kernel.release().to_string_lossy().into_owned()),
            device_type: self.device_type.clone(),
            arch: self.arch.clone(),
        }
    }
}

/// Returns the host's name, which services on its network share; empty if it has none.
pub(crate) fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

fn read_short(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST_FILE).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns a value of an os-release file, in which values are quoted as for a shell.
fn value_of(os_release: &str, key: &str) -> Option<String> {
    let value = os_release
        .lines()
        .find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
    let quoted = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let plain = quoted.unwrap_or(value).replace('\\', "");
    (!plain.is_empty()).then_some(plain)
}

/// The facts of `GET /v1/device`, cached until they are old.
pub(crate) struct DeviceFacts {
    api_port: u16,
    os_version: Option<String>,
    /// The bridge of services that use the API, whose address does not count as the device's.
    own_network: String,
    last: Mutex<Option<(Instant, Arc<api::Facts>)>>,
    gateway: Option<Mutex<GatewayWatch>>,
}

/// Logs when services in containers cannot reach the API at the gateway of their network, because another interface of
/// the host has its address. The interface may get it from the network that the device is in.
struct GatewayWatch {
    gateway: IpAddr,
    /// The interfaces in the last report.
    reported: Vec<String>,
}

impl GatewayWatch {
    fn look(&mut self, own_network: &str) {
        let rivals = rivals_of_gateway(self.gateway, own_network);
        if rivals == self.reported {
            return;
        }
        let gateway = self.gateway;
        if rivals.is_empty() {
            tracing::info!(
                address = %gateway,
                "the address {gateway} is on no other interface any more: services in containers reach the API again"
            );
        } else {
            tracing::warn!(
                address = %gateway,
                interfaces = rivals.join(", "),
                "the address {gateway}, at which services in containers reach the API, is also on `{}`: the services may be unable to reach it; give that interface another address",
                rivals.join("`, `")
            );
        }
        self.reported = rivals;
    }
}

impl DeviceFacts {
    /// Prepares the facts. `gateway` is the address at which services in containers reach the API,
    /// if there are any.
    pub(crate) fn new(
        api_port: u16,
        board: &Board,
        own_network: String,
        gateway: Option<IpAddr>,
    ) -> Self {
        let facts = DeviceFacts {
            api_port,
            os_version: board.os_version.clone(),
            own_network,
            last: Mutex::default(),
            gateway: gateway.map(|gateway| {
                Mutex::new(GatewayWatch {
                    gateway,
                    reported: Vec::new(),
                })
            }),
        };
        facts.look_at_gateway();
        facts
    }

    fn look_at_gateway(&self) {
        if let Some(gateway) = &self.gateway {
            let mut gateway = gateway.lock();
            gateway.look(&self.own_network);
        }
    }

    /// Returns the facts; the same `Arc` for as long as they are the same.
    pub(crate) fn now(&self) -> Arc<api::Facts> {
        let mut last = self.last.lock();
        if let Some((read, facts)) = last.as_ref()
            && read.elapsed() < ADDRESSES_FOR
        {
            return facts.clone();
        }
        self.look_at_gateway();
        let Addresses { ip, mac } = Addresses::read(&self.own_network);
        let fresh = api::Facts {
            api_port: self.api_port,
            ip_address: joined(&ip),
            mac_address: joined(&mac),
            os_version: self.os_version.clone(),
        };
        let facts = match last.take() {
            Some((_, same)) if *same == fresh => same,
            _ => Arc::new(fresh),
        };
        *last = Some((Instant::now(), facts.clone()));
        facts
    }
}

fn joined(addresses: &[String]) -> Option<String> {
    (!addresses.is_empty()).then(|| addresses.join(" "))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_board_is_what_the_boot_partition_says() {
        let root = tempfile::tempdir().unwrap();
        let unknown = Board {
            device_type: "unknown".into(),
            arch: "unknown".into(),
            os_version: None,
            variant: None,
            revision: None,
            os_build: None,
            os: None,
        };
        let device_type = root.path().join("device-type.json");
        assert_eq!(Board::read(&device_type, root.path()), unknown);
        fs::write(&device_type, "{").unwrap();
        assert_eq!(Board::read(&device_type, root.path()), unknown);

        fs::write(
            &device_type,
            r#"{"slug":"qemux86-64","arch":"amd64","x":1}"#,
        )
        .unwrap();
        fs::create_dir(root.path().join("etc")).unwrap();
        fs::write(
            root.path().join("etc/os-release"),
            "ID=\"x\"\nVERSION_ID=1.2\nPRETTY_NAME=\"Some OS 1.2\"\n",
        )
        .unwrap();
        assert_eq!(
            Board::read(&device_type, root.path()),
            Board {
                device_type: "qemux86-64".into(),
                arch: "amd64".into(),
                os_version: Some("Some OS 1.2".into()),
                variant: None,
                revision: None,
                os_build: None,
                os: Some(("x".into(), "1.2".into())),
            }
        );
    }

    #[test]
    fn pretty_names_are_read_with_and_without_quotes() {
        for (text, name) in [
            ("PRETTY_NAME=\"A B\"", Some("A B")),
            ("PRETTY_NAME='A B'", Some("A B")),
            ("X=1\nPRETTY_NAME=A\n", Some("A")),
            ("PRETTY_NAME=\"A \\$1\"", Some("A $1")),
            ("PRETTY_NAME=", None),
            ("NOT_PRETTY_NAME=x", None),
            ("", None),
        ] {
            assert_eq!(value_of(text, "PRETTY_NAME").as_deref(), name, "{text}");
        }
    }

    #[test]
    fn interfaces_with_the_gateways_address_are_remembered() {
        let mut watch = GatewayWatch {
            gateway: "127.0.0.1".parse().unwrap(),
            reported: Vec::new(),
        };
        watch.look("supervisor0");
        assert_eq!(watch.reported, ["lo"]);
        watch.gateway = "192.0.2.255".parse().unwrap();
        watch.look("supervisor0");
        assert!(watch.reported.is_empty());
    }

    #[test]
    fn facts_stay_the_same_value_while_nothing_changes() {
        let facts = DeviceFacts::new(
            1,
            &Board::read(Path::new("/nonexistent"), Path::new("/nonexistent")),
            "supervisor0".into(),
            None,
        );
        let first = facts.now();
        assert!(Arc::ptr_eq(&first, &facts.now()));
        assert_eq!(first.api_port, 1);
    }
}
