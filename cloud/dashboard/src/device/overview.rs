//! A device's first page: its state, the fields of its plugins, its services, its actions, and its log.

use axum::response::sse::Event;
use futures::stream::BoxStream;
use maud::html;

use super::facts::Facts;
use super::tabs::{OVERVIEW, Uuid};
use super::{actions, logs, plugin_fields, services, settings};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::PageResult;
use crate::session_user::SessionUser;

pub(super) struct OverviewPage(Facts);

impl LivePage for OverviewPage {
    type Address = Uuid;
    type Parts = [LiveFragment; 4];

    async fn load(user: &SessionUser, uuid: Uuid) -> PageResult<Self> {
        Ok(OverviewPage(Facts::find(user, &uuid).await?))
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        let services = services::part(user, &self.0.device).await?;
        let plugin_fields = plugin_fields::part(user, &self.0.device).await?;
        Ok([self.0.head(), self.0.part(), services, plugin_fields])
    }

    async fn page(&self, user: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [head, facts, services, plugin_fields] = parts;
        let device = &self.0.device;
        let main = html! {
            (settings::rename_in_place(device))
            section.card aria-label="State" { (facts.placed()) }
            section.stack aria-labelledby="services" {
                h2 id="services" { "Services" }
                (services.placed())
            }
            (plugin_fields.placed())
            (actions::panel(device))
            (logs::panel(user, device).await?)
        };
        Ok(device.page(OVERVIEW, &head, &main))
    }

    /// The lines of its log.
    async fn more_events(&self, user: &SessionUser) -> PageResult<BoxStream<'static, Event>> {
        logs::events(user, &self.0.device).await
    }
}
