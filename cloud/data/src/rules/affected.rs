//! The devices affected by a change: those whose target state contains the changed rows.

use resources::{Resource, Type};

use crate::effect::Effect;
use crate::record;
use crate::statement::{AT_ONCE, sql};
use crate::write::{Change, WriteResult, Writer};

/// The path from a row to the rows whose devices are affected.
#[derive(Clone, Copy)]
struct LinkPath {
    /// The table of the row.
    from: &'static str,
    /// Links, each of the table that the previous one leads to. The last one leads to devices, fleets, releases or
    /// images.
    links: &'static [&'static str],
    /// The fields whose changes count; if empty, all fields.
    fields: &'static [&'static str],
}

fn way(resource: &'static str) -> Option<LinkPath> {
    let (links, fields): (&[&str], &[&str]) = match resource {
        "device" => (
            &[],
            &[
                "device_name",
                "belongs_to__application",
                "is_of__device_type",
                "is_pinned_on__release",
                "should_be_managed_by__release",
                "should_be_operated_by__release",
                "is_active",
                "is_web_accessible",
            ],
        ),
        "device_config_variable" | "device_environment_variable" | "service_install" => {
            (&["device"], &[])
        }
        "device_service_environment_variable" => (&["service_install", "device"], &[]),
        "application" => (&[], &[]),
        "application_config_variable" | "application_environment_variable" => {
            (&["application"], &[])
        }
        "service" => (&["application"], &["service_name"]),
        "service_label" | "service_environment_variable" => (&["service", "application"], &[]),
        "release" => (
            &[],
            &[
                "commit",
                "composition",
                "contract",
                "signed_statement",
                "status",
                "belongs_to__application",
            ],
        ),
        "release_image" => (&["is_part_of__release"], &[]),
        "image_label" | "image_environment_variable" => {
            (&["release_image", "is_part_of__release"], &[])
        }
        "image" => (&[], &["content_hash", "contract", "is_a_build_of__service"]),
        _ => return None,
    };
    Some(LinkPath {
        from: resource,
        links,
        fields,
    })
}

impl LinkPath {
    /// Returns the first link, and the remaining path from its target.
    fn first(self) -> Option<(&'static str, LinkPath)> {
        let (link, links) = self.links.split_first()?;
        let field = resources::v7().resource(self.from)?.find_field(link)?;
        let Type::Link { to, .. } = field.kind else {
            return None;
        };
        let fields = self.fields;
        Some((
            link,
            LinkPath {
                from: to,
                links,
                fields,
            },
        ))
    }
}

/// Reports the devices affected by a new row.
pub(super) async fn by_new(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    id: i64,
) -> WriteResult {
    // A new service, image or release is not yet used by any device.
    if matches!(resource.name, "service" | "image" | "release") {
        return Ok(());
    }
    match way(resource.name) {
        Some(way) => report(writer, way, vec![id]).await,
        None => Ok(()),
    }
}

/// Reports the devices affected by changed rows, both before and after the change.
pub(super) async fn by_change(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    changes: &[Change],
) -> WriteResult {
    if resource.name == "api_key" {
        let actors = changes
            .iter()
            .filter_map(|change| change.old.number("is_of__actor"));
        let actors: Vec<i64> = actors.collect();
        writer.transaction.effect(Effect::ActorsChanged(actors));
    }
    let Some(way) = way(resource.name) else {
        return Ok(());
    };
    let counting: Vec<&Change> = changes
        .iter()
        .filter(|change| {
            let any_but_times = |(field, _)| field != "modified_at" && change.alters(field);
            match way.fields {
                [] => change.new.iter().any(any_but_times),
                fields => change.alters_any(fields),
            }
        })
        .collect();
    if counting.is_empty() {
        return Ok(());
    }
    // The previous target of the first link, if it changed.
    if let Some((link, rest)) = way.first() {
        let before: Vec<i64> = counting
            .iter()
            .filter(|change| change.alters(link))
            .filter_map(|change| change.old.number(link))
            .collect();
        report(writer, rest, before).await?;
    }
    let ids = counting.iter().map(|change| change.id).collect();
    report(writer, way, ids).await
}

/// Reports the devices affected by rows that are about to be deleted.
pub(super) async fn by_removal(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    ids: &[i64],
) -> WriteResult {
    match way(resource.name) {
        // Deleted devices are reported separately.
        _ if resource.name == "device" => Ok(()),
        Some(way) => report(writer, way, ids.to_vec()).await,
        None => Ok(()),
    }
}

async fn report(writer: &mut Writer<'_>, mut way: LinkPath, mut ids: Vec<i64>) -> WriteResult {
    while let Some((link, rest)) = way.first() {
        ids = record::behind(writer.transaction, way.from, link, &ids).await?;
        way = rest;
    }
    match way.from {
        "device" => devices(writer, ids),
        // All devices of a fleet, and those that one of its releases operates or manages.
        "application" => fleets(writer, ids),
        // All devices whose target is the release.
        "release" => releases(writer, &ids).await?,
        // All devices whose target is a release with the image.
        _ => {
            let of_images =
                sql("SELECT DISTINCT is_part_of__release FROM release_image WHERE image IN (?)");
            let of_images = writer.transaction.ids_about(&ids, of_images).await?;
            releases(writer, &of_images).await?;
        }
    }
    Ok(())
}

/// Reports the devices of releases. Most written releases are still being built, and no device runs them.
async fn releases(writer: &mut Writer<'_>, releases: &[i64]) -> WriteResult {
    for releases in releases.chunks(AT_ONCE) {
        let of_fleets = sql("SELECT id FROM application WHERE should_be_running__release IN (?)")
            .with_all(releases);
        let of_fleets = writer.transaction.ids(&of_fleets).await?;
        fleets(writer, of_fleets);
        let of_devices = sql("SELECT id FROM device WHERE is_pinned_on__release IN (?) \
             OR should_be_managed_by__release IN (?) OR should_be_operated_by__release IN (?)")
        .with_all(releases)
        .with_all(releases)
        .with_all(releases);
        let of_devices = writer.transaction.ids(&of_devices).await?;
        devices(writer, of_devices);
    }
    Ok(())
}

/// Reports that the target state of all devices of these fleets may have changed.
pub(super) fn fleets(writer: &mut Writer<'_>, fleets: Vec<i64>) {
    if !fleets.is_empty() {
        writer.transaction.effect(Effect::FleetsChanged(fleets));
    }
}

fn devices(writer: &mut Writer<'_>, devices: Vec<i64>) {
    if !devices.is_empty() {
        writer.transaction.effect(Effect::DevicesChanged(devices));
    }
}
