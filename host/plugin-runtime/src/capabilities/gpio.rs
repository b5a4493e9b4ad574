//! `wit/gpio.wit`: the GPIO lines that the policy names.

use plugin_protocol::{GpioRead, GpioWait, GpioWrite, HARDWARE_NAME};

use crate::bindings::platform::supervisor::gpio::{self, Edge, EdgeEvent, GpioError};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl gpio::Host for &mut Guest {}

impl gpio::HostWithStore<Guest> for GuestData {
    async fn read(access: &GuestAccess, name: String) -> Answer<bool, GpioError> {
        if let Err(error) = check(&name) {
            return Ok(Err(error));
        }
        host(access).try_ask(GpioRead { name }).await
    }

    async fn write(access: &GuestAccess, name: String, on: bool) -> Answer<(), GpioError> {
        if let Err(error) = check(&name) {
            return Ok(Err(error));
        }
        host(access).try_ask(GpioWrite { name, on }).await
    }

    async fn wait_edge(
        access: &GuestAccess,
        name: String,
        edge: Edge,
        milliseconds: u32,
    ) -> Answer<Option<EdgeEvent>, GpioError> {
        if let Err(error) = check(&name) {
            return Ok(Err(error));
        }
        let wait = GpioWait {
            name,
            edge: edge.into(),
            milliseconds,
        };
        let answer = host(access).try_ask(wait).await?;
        Ok(answer.map(|edge| edge.map(EdgeEvent::from)))
    }
}

fn check(name: &str) -> Result<(), GpioError> {
    if name.len() > HARDWARE_NAME {
        let why = format!("no line has a name of more than {HARDWARE_NAME} bytes");
        return Err(GpioError::NotGranted(why));
    }
    Ok(())
}

mirror! { one way enum Edge, plugin_protocol::GpioEdge { Rising, Falling, Both } }
mirror! { one way struct plugin_protocol::GpioEdgeEvent, EdgeEvent { is_rising, nanoseconds, lost } }
mirror! { one way enum plugin_protocol::GpioError, GpioError { NotGranted(why), NotFound(why), Busy(why), Invalid(why), Other(why) } }
