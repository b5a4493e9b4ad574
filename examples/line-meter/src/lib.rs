//! Reads a meter on a serial line, and returns its value with the name of the host: the example of serial ports and
//! of the system bus.
//!
//! The meter's protocol is a line each way: `READ` is answered with `OK 230.1`, or with `ERR` and a reason.
use std::time::Duration;

use serde::{Deserialize, Serialize};
use supervisor_sdk::dbus::{MethodCall, Variant};
use supervisor_sdk::serial::{Port, Settings};
use supervisor_sdk::{Error, Json, config, plugin};

plugin! {
    capabilities: {
        serial => "reads the meter"
        dbus => "asks hostnamed for the host's pretty name"
    }
    routes: { GET "/v3/line-meter" => read }
}

/// How long the meter may take.
const PATIENCE: Duration = Duration::from_secs(2);
const HOSTNAMED: &str = "org.freedesktop.hostname1";

/// The table `[plugins.line-meter]` of the supervisor's configuration.
#[derive(Deserialize)]
struct Configuration {
    /// The meter's serial port, such as `/dev/ttyUSB0`.
    port: String,
}

#[derive(Serialize)]
struct Reading {
    volts: f64,
    host: String,
}

async fn read() -> Result<Json<Reading>, Error> {
    let Configuration { port } = config::read()?;
    let port = Port::open(&port, Settings::baud(9600)).await?;
    port.write("READ\r\n").await?;
    let line = port.read_until(b'\n', PATIENCE).await?;
    let line = String::from_utf8_lossy(&line);
    let volts = line
        .trim()
        .strip_prefix("OK ")
        .and_then(|volts| volts.parse().ok());
    let volts = volts.ok_or_else(|| {
        Error::bad_gateway(format!(
            "the meter answered `{}`",
            line.trim().escape_debug()
        ))
    })?;
    let get = MethodCall::new(
        HOSTNAMED,
        "/org/freedesktop/hostname1",
        "org.freedesktop.DBus.Properties",
        "Get",
    );
    let get = get.arguments("ss", &(HOSTNAMED, "PrettyHostname"))?;
    let (host,): (Variant<String>,) = get.send().await?;
    Ok(Json(Reading {
        volts,
        host: host.data,
    }))
}
