//! Rights that go on: what is opened by a right, and stays open, ends with it.
//!
//! The right is asked again when something is told of whoever holds it, and at least twice a minute: that a fleet is
//! no longer shared, for one, is told of nobody.

use std::time::Duration;

use data::Effect;
use resources::{Action, Method};
use tokio::time::{Instant, timeout_at};

use crate::answer::Refusal;
use crate::bus::{Notification, Subscription};
use crate::cloud::{Cloud, SharedCloud};
use crate::credential::Identity;
use crate::device::DeviceRef;

/// Between two looks at the right.
const LOOK: Duration = Duration::from_secs(30);

/// What somebody has to be permitted as long as a stream is open.
#[derive(Debug, Clone, Copy)]
pub enum Need {
    /// To see the device of this number.
    Read(i64),
    /// To ask the device of this number to do something, or for something.
    Act(i64, Action),
    /// To write the log of a device.
    WriteLog(DeviceRef),
}

/// A right that a stream was opened by.
pub struct Lease {
    cloud: SharedCloud,
    identity: Identity,
    need: Need,
    news: Subscription,
    next: Instant,
    /// Something was told, and the right was not asked again yet.
    due: bool,
}

impl Lease {
    /// The right was just asked for.
    pub fn new(cloud: &SharedCloud, identity: &Identity, need: Need) -> Self {
        Lease {
            news: cloud.bus.subscribe(),
            cloud: cloud.clone(),
            identity: identity.clone(),
            need,
            next: Instant::now() + LOOK,
            due: false,
        }
    }

    /// Returns when there is no such right any more. May be dropped and called again.
    pub async fn over(&mut self) {
        loop {
            if !self.due {
                // Without an answer the time is up.
                let _ =
                    timeout_at(self.next, concerned(&mut self.news, self.identity.actor())).await;
                self.due = true;
            }
            let holds = holds(&self.cloud, &self.identity, self.need).await;
            self.due = false;
            self.next = Instant::now() + LOOK;
            match holds {
                Ok(true) => {}
                Ok(false) | Err(Refusal::Unauthorized) => return,
                // It is not the caller's fault: the next look may do.
                Err(error) => {
                    tracing::warn!("whether a stream may stay open is unknown: {error:?}")
                }
            }
        }
    }
}

/// Returns when something is told that may concern an actor's rights.
async fn concerned(news: &mut Subscription, actor: Option<i64>) {
    loop {
        match news.next().await {
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
