//! Which devices a change concerns: whose target state holds what was changed.

use resources::Resource;

use crate::effect::Effect;
use crate::record;
use crate::statement::sql;
use crate::write::{Change, WriteError, Writer};

/// How one gets from a row to those whose devices are concerned: by these links, each of the resource that
/// the one before led to.
struct LinkPath {
    links: &'static [(&'static str, &'static str)],
    to: Destination,
    /// Only changes of these count; of any field where there are none.
    fields: &'static [&'static str],
}

#[derive(Debug, Clone, Copy)]
enum Destination {
    Devices,
    /// All devices of a fleet, and those that one of its releases operates or manages.
    Fleets,
    /// Whoever is to run the release.
    Releases,
    /// Whoever is to run a release with the image.
    Images,
}

fn way(resource: &str) -> Option<LinkPath> {
    const ANY: &[&str] = &[];
    let (links, to, fields): (&'static [(&str, &str)], Destination, &'static [&str]) =
        match resource {
            "device" => (
                &[],
                Destination::Devices,
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
            "device_config_variable" => (
                &[("device_config_variable", "device")],
                Destination::Devices,
                ANY,
            ),
            "device_environment_variable" => (
                &[("device_environment_variable", "device")],
                Destination::Devices,
                ANY,
            ),
            "service_install" => (&[("service_install", "device")], Destination::Devices, ANY),
            "device_service_environment_variable" => (
                &[
                    ("device_service_environment_variable", "service_install"),
                    ("service_install", "device"),
                ],
                Destination::Devices,
                ANY,
            ),
            "application" => (&[], Destination::Fleets, ANY),
            "application_config_variable" => (
                &[("application_config_variable", "application")],
                Destination::Fleets,
                ANY,
            ),
            "application_environment_variable" => (
                &[("application_environment_variable", "application")],
                Destination::Fleets,
                ANY,
            ),
            "service" => (
                &[("service", "application")],
                Destination::Fleets,
                &["service_name"],
            ),
            "service_label" => (
                &[("service_label", "service"), ("service", "application")],
                Destination::Fleets,
                ANY,
            ),
            "service_environment_variable" => (
                &[
                    ("service_environment_variable", "service"),
                    ("service", "application"),
                ],
                Destination::Fleets,
                ANY,
            ),
            "release" => (
                &[],
                Destination::Releases,
                &[
                    "commit",
                    "composition",
                    "contract",
                    "signed_statement",
                    "status",
                    "belongs_to__application",
                ],
            ),
            "release_image" => (
                &[("release_image", "is_part_of__release")],
                Destination::Releases,
                ANY,
            ),
            "image_label" => (
                &[
                    ("image_label", "release_image"),
                    ("release_image", "is_part_of__release"),
                ],
                Destination::Releases,
                ANY,
            ),
            "image_environment_variable" => (
                &[
                    ("image_environment_variable", "release_image"),
                    ("release_image", "is_part_of__release"),
                ],
                Destination::Releases,
                ANY,
            ),
            "image" => (
                &[],
                Destination::Images,
                &["content_hash", "contract", "is_a_build_of__service"],
            ),
            _ => return None,
        };
    Some(LinkPath { links, to, fields })
}

/// A row was made.
pub(super) async fn by_new(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    id: i64,
) -> Result<(), WriteError> {
    // Nobody runs what no image or release has anything of yet.
    if matches!(resource.name, "service" | "image" | "release") {
        return Ok(());
    }
    match way(resource.name) {
        Some(way) => tell(writer, &way, vec![id]).await,
        None => Ok(()),
    }
}

/// Rows were changed: those of before and those of now are concerned.
pub(super) async fn by_change(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    changes: &[Change],
) -> Result<(), WriteError> {
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
    // What a row belonged to before, where that is what was changed.
    if let Some((_, link)) = way.links.first() {
        let before: Vec<i64> = counting
            .iter()
            .filter(|change| change.alters(link))
            .filter_map(|change| change.old.number(link))
            .collect();
        if !before.is_empty() {
            let rest = LinkPath {
                links: &way.links[1..],
                ..way
            };
            tell(writer, &rest, before).await?;
        }
    }
    let ids = counting.iter().map(|change| change.id).collect();
    tell(writer, &way, ids).await
}

/// Rows are about to go.
pub(super) async fn by_removal(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    ids: &[i64],
) -> Result<(), WriteError> {
    match way(resource.name) {
        // They are told of as gone.
        Some(LinkPath {
            to: Destination::Devices,
            links: [],
            ..
        })
        | None => Ok(()),
        Some(way) => tell(writer, &way, ids.to_vec()).await,
    }
}

async fn tell(
    writer: &mut Writer<'_>,
    way: &LinkPath,
    mut ids: Vec<i64>,
) -> Result<(), WriteError> {
    for (table, column) in way.links {
        ids = record::behind(writer.transaction, table, column, &ids).await?;
    }
    match way.to {
        Destination::Devices => devices(writer, ids),
        Destination::Fleets => fleets(writer, ids),
        Destination::Releases => releases(writer, &ids).await?,
        Destination::Images => {
            let mut all = Vec::new();
            for ids in ids.chunks(record::AT_ONCE) {
                let select = sql(
                    "SELECT DISTINCT is_part_of__release FROM release_image WHERE image IN (?)",
                )
                .with_all(ids);
                all.extend(writer.transaction.ids(&select).await?);
            }
            releases(writer, &all).await?;
        }
    }
    Ok(())
}

/// Most releases that are written are only being built: nobody runs them.
async fn releases(writer: &mut Writer<'_>, releases: &[i64]) -> Result<(), WriteError> {
    for releases in releases.chunks(record::AT_ONCE) {
        let of_fleets = sql("SELECT id FROM application WHERE should_be_running__release IN (?)")
            .with_all(releases);
        let found = writer.transaction.ids(&of_fleets).await?;
        fleets(writer, found);
        let of_devices = sql("SELECT id FROM device WHERE is_pinned_on__release IN (?) \
             OR should_be_managed_by__release IN (?) OR should_be_operated_by__release IN (?)")
        .with_all(releases)
        .with_all(releases)
        .with_all(releases);
        let found = writer.transaction.ids(&of_devices).await?;
        devices(writer, found);
    }
    Ok(())
}

/// What all devices of these fleets should run may have changed.
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
