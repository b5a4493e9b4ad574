//! The part of RAUC's interface on the system bus, `de.pengutronix.rauc.Installer`, that this plugin
//! uses.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use supervisor_sdk::dbus::{MethodCall, Variant};

use crate::slots::{SlotStatus, Slots};

const SERVICE: &str = "de.pengutronix.rauc";
const OBJECT: &str = "/";
const INSTALLER: &str = "de.pengutronix.rauc.Installer";

/// Named values of any types.
pub(crate) type Fields = BTreeMap<String, Variant<Value>>;

/// RAUC's properties.
pub(crate) struct State {
    pub(crate) is_installing: bool,
    /// The progress of the installation, from 0 to 100.
    pub(crate) percent: u8,
    pub(crate) last_error: Option<String>,
    /// The systems that bundles must be made for.
    pub(crate) compatible: String,
    /// The booted slot, according to the boot loader.
    pub(crate) boot_slot: String,
    /// The version according to the handler `system-info`.
    pub(crate) system_version: Option<String>,
}

/// A bundle's description of itself.
pub(crate) struct Bundle {
    pub(crate) compatible: String,
    pub(crate) version: String,
}

/// Reads RAUC's properties, which are also available during an installation.
pub(crate) async fn state() -> Result<State, String> {
    let call = MethodCall::new(SERVICE, OBJECT, "org.freedesktop.DBus.Properties", "GetAll");
    let (fields,): (Fields,) = send(call, "s", &(INSTALLER,)).await?;
    let percent = fields.get("Progress").and_then(|progress| {
        let percent = progress.data.get(0)?.as_i64()?.clamp(0, 100);
        u8::try_from(percent).ok()
    });
    let text = |name: &str| text(&fields, name);
    Ok(State {
        is_installing: match text("Operation").as_deref() {
            Some("idle") => false,
            Some("installing") => true,
            other => {
                return Err(format!(
                    "RAUC's operation is {other:?}, which this plugin does not know"
                ));
            }
        },
        percent: percent.unwrap_or(0),
        last_error: text("LastError"),
        compatible: text("Compatible").unwrap_or_default(),
        boot_slot: text("BootSlot").unwrap_or_default(),
        system_version: text("SystemVersion"),
    })
}

/// Reads the slots; fails while RAUC installs.
pub(crate) async fn slots() -> Result<Slots, String> {
    let (slots,): (Vec<(String, Fields)>,) = send(method("GetSlotStatus"), "", &()).await?;
    let slots = slots
        .into_iter()
        .map(|(name, fields)| SlotStatus::new(name, |field| text(&fields, field)));
    Slots::from_statuses(slots.collect())
}

/// Reads a bundle's description of itself; RAUC checks its signature first.
pub(crate) async fn inspect(source: &str) -> Result<Bundle, String> {
    let none: BTreeMap<String, Variant<Value>> = BTreeMap::new();
    let (info,): (Fields,) = send(method("InspectBundle"), "sa{sv}", &(source, none)).await?;
    let update: Fields = match info.get("update") {
        Some(update) => fields_of(update).map_err(|error| format!("RAUC answered {error}"))?,
        None => Fields::new(),
    };
    Ok(Bundle {
        compatible: text(&update, "compatible").unwrap_or_default(),
        version: text(&update, "version").unwrap_or_default(),
    })
}

/// Begins an installation.
pub(crate) async fn install(source: &str) -> Result<(), String> {
    let none: BTreeMap<String, Variant<Value>> = BTreeMap::new();
    let []: [Value; 0] = send(method("InstallBundle"), "sa{sv}", &(source, none)).await?;
    Ok(())
}

/// Marks a slot, by its name or as `booted`, as `good`, `bad` or `active`.
pub(crate) async fn mark(state: &str, slot: &str) -> Result<(), String> {
    let (_slot, _message): (String, String) = send(method("Mark"), "ss", &(state, slot)).await?;
    Ok(())
}

fn method(name: &str) -> MethodCall {
    MethodCall::new(SERVICE, OBJECT, INSTALLER, name)
}

async fn send<T: DeserializeOwned>(
    call: MethodCall,
    signature: &str,
    arguments: &impl Serialize,
) -> Result<T, String> {
    let call = match signature {
        "" => call,
        signature => {
            let call = call.arguments(signature, arguments);
            call.map_err(|error| error.to_string())?
        }
    };
    call.send().await.map_err(|error| format!("RAUC: {error}"))
}

/// Returns a text if it is not empty.
fn text(fields: &Fields, name: &str) -> Option<String> {
    let text = fields.get(name)?.data.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the fields in a variant, which RAUC wraps in another one.
fn fields_of(variant: &Variant<Value>) -> Result<Fields, serde_json::Error> {
    if variant.signature == "v" {
        let inner = Variant::<Value>::deserialize(&variant.data)?;
        return Fields::deserialize(&inner.data);
    }
    Fields::deserialize(&variant.data)
}
