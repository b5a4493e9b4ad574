//! `deploy`: creates a release from a compose file. Everything is checked before anything is created; after that the
//! release always ends as `success`, `failed` or `interrupted`.

mod component;
pub(crate) mod compose;
mod copy;
mod platform;
mod progress;
mod records;
mod registry;
mod source;
mod version;

use crate::arguments::releases::Deploy;
use crate::cloud::Cloud;
use crate::failure::Result;
use crate::find;
use crate::interrupt::wait_for_interrupt;
use crate::output::Output;

use compose::Composition;
use progress::Progress;
use records::{NewRelease, Records};
use registry::Registries;
use source::Source;

pub(crate) async fn run(cloud: &Cloud, output: &Output, deploy: Deploy) -> Result<()> {
    let version = deploy
        .release_version
        .as_deref()
        .map(version::checked)
        .transpose()?;
    let composition = Composition::read(&deploy.compose)?;
    let fleet = find::fleet(cloud, &deploy.fleet).await?;
    let platform = if deploy.all_platforms {
        None
    } else {
        Some(platform::find_for_fleet(cloud, fleet.id).await?)
    };
    let registries = Registries::new(cloud)?;
    let mut sources = Vec::new();
    for service in &composition.services {
        let _waiting = output.waiting(&format!("checking the image of {}", service.name));
        let source = Source::find(&registries, service, platform.as_ref()).await;
        sources.push(source.map_err(|failure| {
            failure.within(format!(
                "cannot get the image of the service `{}`",
                service.name
            ))
        })?);
    }

    let new = NewRelease {
        fleet: fleet.id,
        composition: &composition,
        version,
        is_final: !deploy.draft,
        note: deploy.note,
    };
    let mut records = Records::begin(cloud, new).await?;
    let progress = Progress::new(output);
    let pushed = tokio::select! {
        pushed = push(&registries, &mut records, &composition, &sources, &progress) => pushed,
        stopped = wait_for_interrupt() => Err(stopped),
    };
    let finished = match pushed {
        Ok(()) => records.succeeded().await,
        Err(failure) => Err(failure),
    };
    progress.end();
    if let Err(failure) = finished {
        if let Err(unmarked) = records.failed(&failure).await {
            output.note(format!(
                "the release {} could not be marked as failed: {unmarked}",
                records.commit
            ));
        }
        return Err(failure);
    }

    let release = find::release(cloud, &records.release.to_string(), Some(fleet.id)).await?;
    let kind = if deploy.draft { "draft" } else { "release" };
    output.done(
        format!("created the {kind} {} of {}", release.name(), fleet.slug),
        &records.summary(&release.raw_version, &fleet.slug),
    );
    if !deploy.draft && !records.is_followed().await? {
        output.note(format!(
            "the fleet is pinned to another release; `fleet track {0}` or `fleet pin {0} {1}` makes it run this one",
            fleet.slug,
            crate::output::short(&records.commit)
        ));
    }
    Ok(())
}

/// Pushes each service in turn: its rows, its blobs, its manifest.
async fn push(
    registries: &Registries<'_>,
    records: &mut Records<'_>,
    composition: &Composition,
    sources: &[Source],
    progress: &Progress,
) -> Result<()> {
    for (service, source) in composition.services.iter().zip(sources) {
        let place = records.image(&service.name).await?;
        let bar = progress.bar(&service.name, source.size());
        let pushed = copy::push(registries, source, &place, &records.commit, &bar).await;
        let digest = pushed.map_err(|failure| {
            failure.within(format!(
                "cannot copy the image of the service `{}` to the cloud's registry",
                service.name
            ))
        })?;
        records.pushed(&digest, source.size()).await?;
        bar.finish(source.name());
    }
    Ok(())
}
