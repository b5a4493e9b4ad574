//! A stand-in for RAUC on a private bus: a system with two slots, whose state the test can see and change.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use zbus::message::{Header, Type};
use zbus::{Connection, MessageStream, Variant};

use crate::SystemBus;

const SERVICE: &str = "de.pengutronix.rauc";
const NAMES: [&str; 2] = ["rootfs.0", "rootfs.1"];
const BOOT_NAMES: [&str; 2] = ["A", "B"];
/// The systems that bundles are for.
const COMPATIBLE: &str = "acme-gate";

/// RAUC, which ends when this is dropped.
pub struct Rauc {
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

struct State {
    slots: [Slot; 2],
    /// The running slot, and the one that the boot loader starts next.
    booted: usize,
    primary: usize,
    /// The version that is being installed, and its progress.
    installing: Option<(String, i32)>,
    last_error: String,
    /// The content of each bundle: the systems that it is for, and its version.
    bundles: HashMap<String, (String, String)>,
    /// The calls that change something, such as `Mark active rootfs.1`.
    calls: Vec<String>,
}

#[derive(Default)]
struct Slot {
    version: Option<String>,
    status: Option<&'static str>,
    is_bad: bool,
}

/// Named values.
type Fields = HashMap<&'static str, Variant<'static>>;

/// Why RAUC refuses a call.
struct Refusal(String);

impl Rauc {
    /// Begins to answer on the bus, as a system that runs this version in its first slot; with `None`, the factory
    /// wrote that slot, and RAUC knows no version of it.
    ///
    /// # Panics
    /// If it does not get its name on the bus.
    pub async fn start(bus: &SystemBus, running: Option<&str>) -> Rauc {
        let address = bus.address();
        let connection = zbus::connection::Builder::address(address.as_str())
            .build()
            .await
            .expect("a connection to the bus");
        let messages = MessageStream::from(&connection);
        connection
            .request_name(SERVICE)
            .await
            .expect("the name of RAUC");
        let first = Slot {
            version: running.map(str::to_owned),
            status: running.map(|_| "ok"),
            is_bad: false,
        };
        let state = Arc::new(Mutex::new(State {
            slots: [first, Slot::default()],
            booted: 0,
            primary: 0,
            installing: None,
            last_error: String::new(),
            bundles: HashMap::new(),
            calls: Vec::new(),
        }));
        let serving = tokio::spawn(serve(connection, messages, Arc::clone(&state)));
        Rauc { state, serving }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Adds a bundle with this version at this address.
    pub fn add_bundle(&self, source: &str, version: &str) {
        self.add_bundle_for(COMPATIBLE, source, version);
    }

    /// As [`Self::add_bundle`], for other systems.
    pub fn add_bundle_for(&self, compatible: &str, source: &str, version: &str) {
        let bundle = (compatible.to_owned(), version.to_owned());
        self.state().bundles.insert(source.to_owned(), bundle);
    }

    /// Returns the version that is being installed, if any.
    #[must_use]
    pub fn installing(&self) -> Option<String> {
        let state = self.state();
        state
            .installing
            .as_ref()
            .map(|(version, _)| version.clone())
    }

    /// Sets the progress of the installation, in percent.
    pub fn progress(&self, percent: i32) {
        if let Some((_, progress)) = &mut self.state().installing {
            *progress = percent;
        }
    }

    /// Ends the installation.
    pub fn finish(&self) {
        let mut state = self.state();
        if let Some((version, _)) = state.installing.take() {
            let other = 1 - state.booted;
            state.slots[other] = Slot {
                version: Some(version),
                status: Some("ok"),
                is_bad: true,
            };
        }
    }

    /// Ends the installation, and makes the next boot start its slot: RAUC does so unless its configuration says
    /// `activate-installed=false`.
    pub fn finish_and_activate(&self) {
        self.finish();
        let mut state = self.state();
        let other = 1 - state.booted;
        state.primary = other;
        state.slots[other].is_bad = false;
    }

    /// Ends the installation with this error.
    pub fn fail(&self, why: &str) {
        let mut state = self.state();
        state.installing = None;
        why.clone_into(&mut state.last_error);
        let other = 1 - state.booted;
        state.slots[other].status = Some("failed");
    }

    /// Boots the host: the boot loader starts the next slot, unless that is bad.
    pub fn boot(&self) {
        let mut state = self.state();
        let next = state.primary;
        if state.slots[next].is_bad {
            state.primary = state.booted;
        } else {
            state.booted = next;
        }
        state.last_error.clear();
    }

    /// Boots the host, and the boot loader gives up on the next slot.
    pub fn fall_back(&self) {
        let mut state = self.state();
        let next = state.primary;
        state.slots[next].is_bad = true;
        state.primary = state.booted;
        state.last_error.clear();
    }

    /// Returns the running version.
    #[must_use]
    pub fn running(&self) -> Option<String> {
        let state = self.state();
        state.slots[state.booted].version.clone()
    }

    /// Returns the calls that change something, such as `Mark active rootfs.1`.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }
}

impl Drop for Rauc {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(connection: Connection, mut messages: MessageStream, state: Arc<Mutex<State>>) {
    while let Some(Ok(message)) = messages.next().await {
        let header = message.header();
        if header.message_type() != Type::MethodCall {
            continue;
        }
        // The caller notices a failed answer.
        let _ = answer(&connection, &header, &message.body(), &state).await;
    }
}

async fn answer(
    connection: &Connection,
    header: &Header<'_>,
    body: &zbus::message::Body,
    state: &Mutex<State>,
) -> zbus::Result<()> {
    let text = |name: Option<&str>| name.unwrap_or_default().to_owned();
    let interface = text(header.interface().map(|name| name.as_str()));
    let member = text(header.member().map(|name| name.as_str()));
    let locked = || state.lock();
    match (interface.as_str(), member.as_str()) {
        ("org.freedesktop.DBus.Properties", "GetAll") => {
            let properties = locked().properties();
            connection.reply(header, &properties).await
        }
        ("de.pengutronix.rauc.Installer", "GetSlotStatus") => {
            let slots = locked().slot_status();
            reply(connection, header, slots).await
        }
        ("de.pengutronix.rauc.Installer", "InspectBundle") => {
            let (source, _): (String, HashMap<String, zbus::OwnedVariant>) = body.deserialize()?;
            let bundle = locked().inspect(&source);
            reply(connection, header, bundle).await
        }
        ("de.pengutronix.rauc.Installer", "InstallBundle") => {
            let (source, _): (String, HashMap<String, zbus::OwnedVariant>) = body.deserialize()?;
            let begun = locked().install(&source);
            reply(connection, header, begun).await
        }
        ("de.pengutronix.rauc.Installer", "Mark") => {
            let (what, slot): (String, String) = body.deserialize()?;
            let marked = locked().mark(&what, &slot);
            reply(connection, header, marked).await
        }
        _ => {
            let unknown = "org.freedesktop.DBus.Error.UnknownMethod";
            let why = format!("no method `{member}`");
            connection.reply_error(header, unknown, &why).await
        }
    }
}

async fn reply<T>(
    connection: &Connection,
    header: &Header<'_>,
    outcome: Result<T, Refusal>,
) -> zbus::Result<()>
where
    T: serde::Serialize + zbus::DynamicType,
{
    match outcome {
        Ok(values) => connection.reply(header, &values).await,
        Err(Refusal(why)) => {
            // GLib's name for this error.
            let name = "org.gtk.GDBus.UnmappedGError.Quark._g_2dio_2derror_2dquark.Code30";
            connection.reply_error(header, name, &why).await
        }
    }
}

impl State {
    fn properties(&self) -> Fields {
        let (operation, percent) = match &self.installing {
            Some((_, percent)) => ("installing", *percent),
            None => ("idle", 0),
        };
        let progress = zbus::Structure::from((percent, "Installing", 1));
        HashMap::from([
            ("Operation", Variant::from(operation)),
            ("LastError", Variant::from(self.last_error.clone())),
            ("Progress", Variant::from(progress)),
            ("Compatible", Variant::from(COMPATIBLE)),
            ("Variant", Variant::from("")),
            ("BootSlot", Variant::from(BOOT_NAMES[self.booted])),
        ])
    }

    /// RAUC refuses other calls while it installs.
    fn check_idle(&self) -> Result<(), Refusal> {
        match self.installing {
            None => Ok(()),
            Some(_) => Err(Refusal("already processing a different method".to_owned())),
        }
    }

    fn slot_status(&self) -> Result<(Vec<(&'static str, Fields)>,), Refusal> {
        self.check_idle()?;
        let slots = self.slots.iter().enumerate().map(|(number, slot)| {
            let is_booted = number == self.booted;
            let mut fields: Fields = HashMap::from([
                ("class", Variant::from("rootfs")),
                ("device", Variant::from("/dev/null")),
                ("type", Variant::from("ext4")),
                ("bootname", Variant::from(BOOT_NAMES[number])),
                (
                    "state",
                    Variant::from(if is_booted { "booted" } else { "inactive" }),
                ),
                (
                    "boot-status",
                    Variant::from(if slot.is_bad { "bad" } else { "good" }),
                ),
            ]);
            if let (Some(version), Some(status)) = (&slot.version, slot.status) {
                fields.insert("bundle.version", Variant::from(version.clone()));
                fields.insert("status", Variant::from(status));
                fields.insert("installed.count", Variant::from(1_u32));
            }
            (NAMES[number], fields)
        });
        Ok((slots.collect(),))
    }

    fn bundle(&self, source: &str) -> Result<&(String, String), Refusal> {
        let missing = || Refusal(format!("Failed to download bundle {source}: 404"));
        self.bundles.get(source).ok_or_else(missing)
    }

    fn inspect(&self, source: &str) -> Result<(Fields,), Refusal> {
        self.check_idle()?;
        let (compatible, version) = self.bundle(source)?;
        let update: HashMap<String, Variant<'static>> = HashMap::from([
            ("compatible".to_owned(), Variant::from(compatible.clone())),
            ("version".to_owned(), Variant::from(version.clone())),
        ]);
        // A variant in a variant, as RAUC sends it.
        let update = Variant::Variant(Box::new(Variant::from(update)));
        Ok((HashMap::from([
            ("manifest-hash", Variant::from("ab12")),
            ("update", update),
        ]),))
    }

    fn install(&mut self, source: &str) -> Result<(), Refusal> {
        self.check_idle()?;
        let (_, version) = self.bundle(source)?.clone();
        self.calls.push(format!("InstallBundle {source}"));
        let other = 1 - self.booted;
        self.slots[other] = Slot {
            version: None,
            status: Some("pending"),
            is_bad: true,
        };
        self.installing = Some((version, 0));
        Ok(())
    }

    fn mark(&mut self, what: &str, slot: &str) -> Result<(&'static str, String), Refusal> {
        self.check_idle()?;
        self.calls.push(format!("Mark {what} {slot}"));
        let number = match slot {
            "booted" => self.booted,
            "other" => 1 - self.booted,
            name => NAMES
                .iter()
                .position(|known| *known == name)
                .ok_or_else(|| Refusal(format!("No slot with name {name} found")))?,
        };
        match what {
            "active" => {
                self.primary = number;
                self.slots[number].is_bad = false;
            }
            "good" => self.slots[number].is_bad = false,
            "bad" => {
                self.slots[number].is_bad = true;
                if self.primary == number {
                    self.primary = 1 - number;
                }
            }
            other => return Err(Refusal(format!("unknown subcommand {other}"))),
        }
        Ok((
            NAMES[number],
            format!("marked slot(s) {} as {what}", NAMES[number]),
        ))
    }
}
