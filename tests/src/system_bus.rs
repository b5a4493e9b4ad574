//! A private system bus, with stand-ins for systemd's services by python-dbusmock.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use zbus::{Connection, DynamicType};

use crate::until::until;

/// A private bus on which logind, systemd and hostnamed answer without doing anything. Dropping it ends all of them.
pub struct SystemBus {
    folder: TempDir,
    daemon: Process,
    /// The interpreter that has dbusmock.
    python: &'static str,
    services: Vec<Process>,
    connection: Connection,
}

/// A process that is ended with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A service of the bus.
struct Service {
    name: &'static str,
    path: &'static str,
    interface: &'static str,
    /// For each method its name, arguments, answer, and action in Python.
    methods: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

const SERVICES: [Service; 3] = [
    Service {
        name: "org.freedesktop.login1",
        path: "/org/freedesktop/login1",
        interface: "org.freedesktop.login1.Manager",
        // dbusmock has a template with its methods.
        methods: &[],
    },
    Service {
        name: "org.freedesktop.systemd1",
        path: "/org/freedesktop/systemd1",
        interface: "org.freedesktop.systemd1.Manager",
        // dbusmock's template lacks two methods, and does not report calls.
        methods: &[
            ("LoadUnit", "s", "o", LOAD_UNIT),
            (
                "StartUnit",
                "ss",
                "o",
                "ret = self.job(args[0], 'active', 'running')",
            ),
            (
                "StopUnit",
                "ss",
                "o",
                "ret = self.job(args[0], 'inactive', 'dead')",
            ),
            (
                "RestartUnit",
                "ss",
                "o",
                "ret = self.job(args[0], 'active', 'running')",
            ),
        ],
    },
    Service {
        name: "org.freedesktop.hostname1",
        path: "/org/freedesktop/hostname1",
        interface: "org.freedesktop.hostname1",
        methods: &[("SetStaticHostname", "sb", "", "")],
    },
];

/// As in systemd: every name has an object, which reports if the unit does not exist.
const LOAD_UNIT: &str = "\
path = '/org/freedesktop/systemd1/unit/' + ''.join([c if c.isalnum() else '_%02x' % ord(c) for c in args[0]])
if path not in objects:
    self.AddObject(path, 'org.freedesktop.systemd1.Unit', {'LoadState': 'not-found', 'ActiveState': 'inactive', 'SubState': 'dead'}, [])
ret = dbus.ObjectPath(path)";

/// Changes an existing unit, and refuses for others.
const JOB: &str = "\
def job(name, active, sub):
    path = '/org/freedesktop/systemd1/unit/' + ''.join([c if c.isalnum() else '_%02x' % ord(c) for c in name])
    unit = objects.get(path)
    if unit is None or unit.props['org.freedesktop.systemd1.Unit']['LoadState'] != 'loaded':
        raise dbus.exceptions.DBusException('Unit ' + name + ' not found.', name='org.freedesktop.systemd1.NoSuchUnit')
    unit.UpdateProperties('org.freedesktop.systemd1.Unit', {'ActiveState': active, 'SubState': sub})
    return dbus.ObjectPath('/org/freedesktop/systemd1/job/1')
type(self).job = staticmethod(job)";

const UNIT: &str = "org.freedesktop.systemd1.Unit";
const MOCK: &str = "org.freedesktop.DBus.Mock";

const CONFIGURATION: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=SOCKET</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// Debian's own first, since it has Debian's packages: the first one on the path may be another one.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "python3"];

impl SystemBus {
    /// Starts the bus; returns `None`, and prints a line about it, if the programs for it are missing.
    ///
    /// # Panics
    /// If the programs exist and do not start.
    pub async fn start() -> Option<Self> {
        let runs = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null());
            command.output().is_ok_and(|output| output.status.success())
        };
        let has_mock = |python: &&str| runs(python, &["-c", "import dbusmock"]);
        let python = PYTHONS.into_iter().find(has_mock);
        let Some(python) = python.filter(|_| runs("dbus-daemon", &["--version"])) else {
            println!("SKIPPED: no private system bus (dbus-daemon or python3-dbusmock is missing)");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let daemon = start_daemon(folder.path());
        let connection = until("the private system bus to answer", || async {
            connect(folder.path()).await
        })
        .await;
        let mut bus = SystemBus {
            folder,
            daemon,
            python,
            services: Vec::new(),
            connection,
        };
        bus.start_services().await;
        Some(bus)
    }

    /// Returns the address, for `--dbus-address`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("unix:path={}", socket_in(self.folder.path()).display())
    }

    /// Returns the calls of the services since their start, such as `RestartUnit "a.service" "replace"`: method and
    /// arguments as dbusmock writes them, services in the order logind, systemd, hostnamed.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        let mut calls = Vec::new();
        for service in &SERVICES {
            let log = fs::read_to_string(self.log_of(service)).unwrap_or_default();
            calls.extend(log.lines().filter_map(|line| {
                let (_time, call) = line.split_once(' ')?;
                // Its own control calls, and signals, are left out.
                let is_control = ["Add", "SetUp", "Set ", "Get", "emit ", "LoadUnit", "job"]
                    .iter()
                    .any(|word| call.starts_with(word));
                (!is_control).then(|| call.to_owned())
            }));
        }
        calls
    }

    /// Puts a unit into this state.
    ///
    /// # Panics
    /// If the stand-in refuses it.
    pub async fn set_unit(&self, unit: &str, load: &str, active: &str, sub: &str) {
        let path = self.call_for_path("LoadUnit", &unit).await;
        for (name, value) in [
            ("LoadState", load),
            ("ActiveState", active),
            ("SubState", sub),
        ] {
            let value = zbus::Variant::from(value);
            self.connection
                .call_method(
                    Some(SERVICES[1].name),
                    path.as_str(),
                    Some("org.freedesktop.DBus.Properties"),
                    "Set",
                    &(UNIT, name, value),
                )
                .await
                .expect("a unit's property is set");
        }
    }

    /// Adds a text property to the object of the service with this name.
    ///
    /// # Panics
    /// If there is no such service, or it has the property already.
    pub async fn add_property(&self, service: &str, name: &str, text: &str) {
        let service = SERVICES
            .iter()
            .find(|known| known.name == service)
            .expect("a service of the bus");
        let mock = Some("org.freedesktop.DBus.Mock");
        let body = (service.interface, name, zbus::Variant::from(text));
        self.connection
            .call_method(Some(service.name), service.path, mock, "AddProperty", &body)
            .await
            .expect("dbusmock adds a property");
    }

    /// Replaces the action of `method` of the service with this name by `code` (Python).
    ///
    /// # Panics
    /// If there is no such service.
    pub async fn replace(
        &self,
        service: &str,
        method: &str,
        arguments: &str,
        answer: &str,
        code: &str,
    ) {
        let service = SERVICES
            .iter()
            .find(|known| known.name == service)
            .expect("a service of the bus");
        self.add_method(service, method, arguments, answer, code)
            .await;
    }

    /// Ends the bus and starts it again at the same address, as a package upgrade would.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn restart(&mut self) {
        self.stop();
        // Not every version of dbusmock truncates its log.
        for service in &SERVICES {
            let _ = fs::remove_file(self.log_of(service));
        }
        self.daemon = start_daemon(self.folder.path());
        self.connection = until("the private system bus to answer", || async {
            connect(self.folder.path()).await
        })
        .await;
        self.start_services().await;
    }

    /// Ends the bus; nothing listens at its address until [`SystemBus::restart`].
    pub fn stop(&mut self) {
        self.services.clear();
        let _ = self.daemon.0.kill();
        let _ = self.daemon.0.wait();
    }

    async fn start_services(&mut self) {
        for service in &SERVICES {
            let mut command = Command::new(self.python);
            command
                .args(["-m", "dbusmock", "--system", "--logfile"])
                .arg(self.log_of(service));
            if service.methods.is_empty() {
                command.args(["--template", "logind"]);
            } else {
                command.args([service.name, service.path, service.interface]);
            }
            let process = command
                .env("DBUS_SYSTEM_BUS_ADDRESS", self.address())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .expect("Python runs");
            self.services.push(Process(process));
        }
        for service in &SERVICES {
            until("a service to be on the private system bus", || async {
                self.connection
                    .call_method(
                        Some(service.name),
                        service.path,
                        Some("org.freedesktop.DBus.Peer"),
                        "Ping",
                        &(),
                    )
                    .await
            })
            .await;
            for (method, arguments, answer, code) in service.methods {
                self.add_method(service, method, arguments, answer, code)
                    .await;
            }
        }
        // A method that defines helpers for the others, and is called once.
        self.add_method(&SERVICES[1], "SetUp", "", "", JOB).await;
        self.connection
            .call_method(
                Some(SERVICES[1].name),
                SERVICES[1].path,
                Some(SERVICES[1].interface),
                "SetUp",
                &(),
            )
            .await
            .expect("the stand-in for systemd is set up");
    }

    async fn add_method(
        &self,
        service: &Service,
        method: &str,
        arguments: &str,
        answer: &str,
        code: &str,
    ) {
        self.connection
            .call_method(
                Some(service.name),
                service.path,
                Some(MOCK),
                "AddMethod",
                &(service.interface, method, arguments, answer, code),
            )
            .await
            .expect("a method is added");
    }

    async fn call_for_path<B>(&self, method: &str, body: &B) -> String
    where
        B: serde::Serialize + DynamicType,
    {
        let systemd = &SERVICES[1];
        let answer = self
            .connection
            .call_method(
                Some(systemd.name),
                systemd.path,
                Some(systemd.interface),
                method,
                body,
            )
            .await
            .expect("the stand-in for systemd answers");
        let path: zbus::OwnedObjectPath = answer.body().deserialize().expect("a path");
        path.to_string()
    }

    fn log_of(&self, service: &Service) -> PathBuf {
        self.folder.path().join(format!("{}.log", service.name))
    }
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("bus")
}

async fn connect(folder: &Path) -> zbus::Result<Connection> {
    let address = format!("unix:path={}", socket_in(folder).display());
    zbus::connection::Builder::address(address.as_str())
        .build()
        .await
}

fn start_daemon(folder: &Path) -> Process {
    let configuration = folder.join("bus.conf");
    let socket = socket_in(folder).display().to_string();
    let _ = fs::remove_file(&socket);
    fs::write(&configuration, CONFIGURATION.replace("SOCKET", &socket)).expect("a configuration");
    let process = Command::new("dbus-daemon")
        .arg("--nofork")
        .arg("--nopidfile")
        .arg("--config-file")
        .arg(configuration)
        .stdin(Stdio::null())
        .spawn()
        .expect("dbus-daemon runs");
    Process(process)
}
