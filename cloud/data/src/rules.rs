//! Rules between rows, derived fields, and the consequences of changes (docs/spec/cloud.md#rules).
//!
//! A [`Writer`] calls these around its statements, in the transaction of the request; each family of resources has a
//! file. Requirements on a single value are defined in the `resources` crate. A rule never checks access rights: the
//! writer does so before and after it.

mod affected;
mod asset;
mod device;
mod fleet;
mod history;
mod image;
mod installs;
mod invite;
mod numbering;
mod people;
mod release;
mod secret;
mod system_release;
mod tracking;

use std::collections::BTreeSet;

use async_trait::async_trait;
pub(crate) use people::give_slugs;
use resources::Resource;
use serde_json::{Map, Value};
pub(crate) use system_release::drop_those_of_strangers;

use crate::effect::Effect;
use crate::image_garbage;
use crate::record::{self, Record};
use crate::write::{Change, RowRules, RowsToDelete, Rules, WriteResult, Writer};

/// The rules of docs/spec/cloud.md#rules.
pub const ROW_RULES: Rules = Rules(&SpecifiedRules);

/// Fields that may increase the usage of an organization or a row: contents and owners.
const GROWING: [&str; 5] = [
    "value",
    "file",
    "asset",
    "belongs_to__application",
    "organization",
];

#[derive(Debug)]
struct SpecifiedRules;

#[async_trait]
impl RowRules for SpecifiedRules {
    async fn resolve_people(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        body: &Map<String, Value>,
        values: &mut Record,
    ) -> WriteResult {
        invite::invitee(writer, resource, body, values).await?;
        people::member(writer, resource, body, values).await
    }

    async fn before_create(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        change: &mut Change,
    ) -> WriteResult {
        secret::before_create(writer, resource, change)?;
        match resource.name {
            "application" => fleet::before_create(writer, change).await,
            "device" => device::before_create(writer, change).await,
            "release" => release::before_create(writer, change).await,
            "image" => image::before_create(writer, change).await,
            "release_image" => image::before_use(writer, change).await,
            "release_asset" => asset::before_change(writer, change),
            "organization" => people::before_organization(writer, change).await,
            "organization_membership" => people::MEMBER.give_to(writer, change).await,
            "user_application_membership" | "team_application_access" => {
                people::DEVELOPER.give_to(writer, change).await
            }
            "organization_invite" | "application_invite" => {
                invite::before_create(writer, resource, change).await
            }
            _ => Ok(()),
        }
    }

    async fn after_create(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        change: &Change,
    ) -> WriteResult {
        match resource.name {
            "device" => device::after_create(writer, change).await?,
            "release" => tracking::follow(writer, std::slice::from_ref(change)).await?,
            "release_image" => image::after_use(writer, change).await?,
            "release_asset" => asset::after_change(writer, change).await?,
            "organization" => people::after_organization(writer, change).await?,
            _ => {}
        }
        affected::by_new(writer, resource, change.id).await
    }

    async fn before_change(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        changes: &mut [Change],
    ) -> WriteResult {
        secret::before_change(writer, resource, changes)?;
        match resource.name {
            "application" => {
                for change in changes {
                    fleet::before_change(writer, change).await?;
                }
            }
            "device" => device::before_change(writer, changes).await?,
            "release" => release::before_change(writer, changes).await?,
            "image" => {
                for change in changes {
                    image::check(change)?;
                }
            }
            "release_asset" => asset::before_changes(writer, changes)?,
            "organization" => people::before_organization_change(writer, changes)?,
            "organization_membership" => people::before_membership_change(writer, changes).await?,
            _ => {}
        }
        Ok(())
    }

    async fn after_change(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        changes: &[Change],
    ) -> WriteResult {
        match resource.name {
            "application" => fleet::after_change(writer, changes).await?,
            "device" => device::after_change(writer, changes).await?,
            "release" => tracking::follow(writer, changes).await?,
            "organization" => people::after_organization_change(writer, changes).await?,
            "release_asset" => {
                for change in changes {
                    asset::after_change(writer, change).await?;
                }
            }
            _ => {}
        }
        for change in changes {
            if GROWING.iter().any(|field| change.new.has(field)) {
                writer.check_quotas(resource.name, change.id).await?;
            }
        }
        affected::by_change(writer, resource, changes).await
    }

    async fn before_remove(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        ids: &[i64],
    ) -> WriteResult {
        match resource.name {
            "release" => release::nobody_runs(writer, ids).await,
            "organization" => people::before_organization_goes(writer, ids).await,
            "organization_membership" => people::before_leaving(writer, ids).await,
            "user" => people::before_user_goes(writer, ids).await,
            _ => Ok(()),
        }
    }

    async fn before_going(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        ids: &[i64],
        going: &RowsToDelete,
    ) -> WriteResult {
        affected::by_removal(writer, resource, ids).await?;
        let of = |name: &str| -> Vec<i64> {
            let ids = going.get(name).into_iter().flatten();
            ids.copied().collect()
        };
        let devices = of("device");
        if !devices.is_empty() {
            let gone = device::before_going(writer, &devices).await?;
            writer.transaction.effect(Effect::DevicesGone(gone));
        }
        let images = of("image");
        if !images.is_empty() {
            let locations = image::locations(writer, &images).await?;
            image_garbage::note(writer, &images).await?;
            writer.transaction.effect(Effect::ImagesGone(locations));
        }
        let mut actors = of("actor");
        if resource.name == "api_key" {
            actors = record::behind(writer.transaction, "api_key", "is_of__actor", ids).await?;
        }
        if resource.name == "user_session" {
            let users = record::behind(writer.transaction, "user_session", "user", ids).await?;
            actors.extend(record::behind(writer.transaction, "user", "actor", &users).await?);
        }
        if !actors.is_empty() {
            writer.transaction.effect(Effect::ActorsChanged(actors));
        }
        Ok(())
    }

    async fn find_unshared_images(
        &self,
        writer: &mut Writer<'_>,
        releases: &BTreeSet<i64>,
    ) -> WriteResult<Vec<i64>> {
        image::find_unshared_images(writer, releases).await
    }
}
