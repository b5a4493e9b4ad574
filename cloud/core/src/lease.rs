//! Rights that are checked repeatedly: a stream that was opened by a right ends when the right does.
//!
//! The right is checked again when a notification concerns its holder, and at least twice a minute: for one, that a
//! fleet is no longer shared is not announced.

use std::time::Duration;

use data::Effect;
use resources::{Action, Method};
use tokio::time::{Instant, timeout_at};

use crate::answer::Refusal;
use crate::bus::{Notification, Subscription};
use crate::cloud::{Cloud, SharedCloud};
use crate::credential::Identity;
use crate::device::DeviceRef;

/// Interval between two checks of the right.
const LOOK: Duration = Duration::from_secs(30);

/// The permission required for as long as a stream is open.
#[derive(Debug, Clone, Copy)]
pub enum Need {
    /// To see the device of this number.
    Read(i64),
    /// To have the device of this number do something, or to request something from it.
    Act(i64, Action),
    /// To write the log of a device.
    WriteLog(DeviceRef),
}

/// The right by which a stream was opened.
pub struct Lease {
    cloud: SharedCloud,
    identity: Identity,
    need: Need,
    notifications: Subscription,
    next: Instant,
    /// Whether there was a notification after the last check of the right.
    due: bool,
}

impl Lease {
    /// Creates a lease for a right that was just checked.
    pub fn new(cloud: &SharedCloud, identity: &Identity, need: Need) -> Self {
        Lease {
            notifications: cloud.bus.subscribe(),
            cloud: cloud.clone(),
            identity: identity.clone(),
            need,
            next: Instant::now() + LOOK,
            due: false,
        }
    }

    /// Returns when the right no longer exists. May be dropped and called again.
    pub async fn wait_for_end(&mut self) {
        loop {
            if !self.due {
                // A timeout means that the next check is due.
                let _ = timeout_at(
                    self.next,
                    concerned(&mut self.notifications, self.identity.actor()),
                )
                .await;
                self.due = true;
            }
            let holds = holds(&self.cloud, &self.identity, self.need).await;
            self.due = false;
            self.next = Instant::now() + LOOK;
            match holds {
                Ok(true) => {}
                Ok(false) | Err(Refusal::Unauthorized) => return,
                // The caller is not at fault, and the next check may succeed.
                Err(error) => {
                    tracing::warn!("failed to check whether a stream may stay open: {error:?}")
                }
            }
        }
    }
}

/// Returns after a notification that may concern an actor's rights.
async fn concerned(notifications: &mut Subscription, actor: Option<i64>) {
    loop {
        match notifications.next().await {
            Some(Notification::Lagged) => return,
            Some(Notification::Effects(effects)) => {
                let notified = effects.iter().any(|effect| match effect {
                    Effect::ActorsChanged(actors) => {
                        actor.is_some_and(|actor| actors.contains(&actor))
                    }
                    _ => false,
                });
                if notified {
                    return;
                }
            }
            Some(Notification::Arrived { .. }) => {}
            None => std::future::pending().await,
        }
    }
}

async fn holds(cloud: &Cloud, identity: &Identity, need: Need) -> Result<bool, Refusal> {
    let identity = cloud.auth.identify_again(identity).await?;
    let caller = &identity.caller;
    let right = match need {
        Need::WriteLog(device) => {
            let right = cloud.right_on_device(&identity, device, Action::WriteLog);
            right.await?
        }
        Need::Read(device) => cloud.right(caller, "device", device, Method::Read).await?,
        Need::Act(device, action) => cloud.right(caller, "device", device, action).await?,
    };
    Ok(right.is_some())
}
