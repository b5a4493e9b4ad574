//! What the connected devices of a fleet answer about their plugins.
//!
//! Each answer is bounded in size and time and read by itself, so a device that answers garbage, too much or never costs
//! the others nothing.

use std::collections::HashMap;

use cloud_core::answer::Refusal;
use cloud_core::tunnels::proxy::{DeviceAnswer, look_up_each};
use futures::StreamExt as _;
use maud::{Markup, html};
use serde::Deserialize;

use super::tabs::Fleet;
use crate::page_error::{PageError, PageResult, sentence};
use crate::plugin_list::{PluginList, read};
use crate::session_user::SessionUser;

/// The maximum number of devices that are asked: each takes a twentieth of a second.
const DEVICES: usize = 100;

/// A device that was asked.
#[derive(Debug, Deserialize)]
pub(super) struct FleetDevice {
    id: i64,
    pub(super) uuid: String,
    pub(super) device_name: String,
}

/// What a page shows of a device's answer, or why there is none.
pub(super) type FleetDeviceAnswer<T> = (FleetDevice, Result<T, String>);

/// The answers of a fleet's devices.
pub(super) struct FleetAnswers<T> {
    /// The number of connected devices, of which not all may have been asked.
    connected: usize,
    /// The devices that were asked, in the order of their registration.
    pub(super) devices: Vec<FleetDeviceAnswer<T>>,
}

impl<T> FleetAnswers<T> {
    /// Asks the devices for their plugins, as the user; `keep` takes from each list what the page shows, as soon as
    /// the list is there. Returns the reason, for people, if none is asked.
    ///
    /// # Errors
    /// If the API refuses the request for another reason, or the database fails.
    pub(super) async fn load(
        user: &SessionUser,
        fleet: &Fleet,
        keep: impl Fn(PluginList) -> T,
    ) -> PageResult<Result<Self, String>> {
        let filter = format!(
            "$filter=belongs_to__application eq {} and is_online eq true",
            fleet.id
        );
        let connected = user.count("/device", &filter).await?;
        let query = format!("$select=id,uuid,device_name&{filter}&$orderby=id asc&$top={DEVICES}");
        let devices: Vec<FleetDevice> = user.rows("/device", &query).await?;
        let numbers = devices.iter().map(|device| device.id).collect();
        let (cloud, identity) = (user.cloud.clone(), &user.identity);
        let answers = look_up_each(cloud, identity, fleet.id, numbers, "/v3/plugins").await;
        let mut answers = match answers {
            Ok(answers) => answers,
            Err(error) => return refusal_text(error).map(Err),
        };
        let mut lists = HashMap::new();
        while let Some(DeviceAnswer { device, answer }) = answers.next().await {
            let list = match answer {
                Ok(answer) => read(answer.status, &answer.body).map(&keep),
                Err(why) => Err(sentence(&why)),
            };
            lists.insert(device, list);
        }
        let devices = devices.into_iter().map(|device| {
            let list = lists.remove(&device.id);
            let no_answer = || Err("The device is not connected any more.".to_owned());
            (device, list.unwrap_or_else(no_answer))
        });
        Ok(Ok(FleetAnswers {
            connected: usize::try_from(connected).unwrap_or_default(),
            devices: devices.collect(),
        }))
    }

    /// Says how many devices were asked, and how many of them answered.
    pub(super) fn counts(&self) -> Markup {
        let requests = self.devices.len();
        let lists = self.devices.iter().filter(|(_, list)| list.is_ok()).count();
        html! {
            @if self.connected > DEVICES {
                p.notice.wary {
                    "This page queries at most " (DEVICES) " devices: the first " (requests) " of " (self.connected)
                    " connected devices, in the order of their registration. " (lists) " of them answered."
                }
            } @else {
                p.faint { (lists) " of " (requests) " connected devices answered." }
            }
        }
    }
}

/// Returns why no device is asked.
fn refusal_text(error: Refusal) -> PageResult<String> {
    match error {
        Refusal::Missing(_) => Ok("No device of this fleet is connected.".to_owned()),
        Refusal::Unreached(why) | Refusal::Unavailable(why) => {
            Ok(format!("The devices did not answer: {why}."))
        }
        Refusal::Forbidden(_) => Ok(
            "You may not read this: it requires the right to see the devices' variables."
                .to_owned(),
        ),
        error => Err(PageError(error)),
    }
}
