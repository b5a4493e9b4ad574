//! `wit/actions.wit`: asks other plugins to perform their own actions.

use plugin_protocol::{ACTION_BYTES, ActionRequest, OwnActionError};

use crate::bindings::platform::supervisor::actions::{self, ActionError};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl actions::Host for &mut Guest {}

impl actions::HostWithStore<Guest> for GuestData {
    async fn call(
        access: &GuestAccess,
        action: String,
        input: Vec<u8>,
    ) -> Answer<Vec<u8>, ActionError> {
        // A longer input does not fit into a message to the host.
        let (length, limit) = (input.len(), ACTION_BYTES >> 10);
        if length > ACTION_BYTES {
            let why = format!("the input has {length} bytes, more than {limit} KiB");
            return Ok(Err(ActionError::Invalid(why)));
        }
        host(access).try_ask(ActionRequest { action, input }).await
    }
}

mirror! { one way enum OwnActionError, ActionError { NotGranted(why), Unavailable(why), Invalid(why), Refused(why), Failed(why) } }
