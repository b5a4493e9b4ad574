//! `supervisor remove-services`: removes the objects of a stopped device from its engines.
//!
//! A supervisor leaves its services running when it stops. `cargo xtask run` calls this to remove a device completely.
//! Only objects with this device's uuid are touched, even if the engine is configured as exclusive.

use std::time::Duration;

use anyhow::{Result, bail};
use engine::{EngineError, Ownership};
use futures::future::join_all;
use model::error_chain;
use store::{OpenStore, Store};

use crate::arguments::{Flags, Removal};
use crate::{configuration, engines, walls};

/// Stops and removes the device's services and networks; with [`Removal::all`] also its volumes and the images that it
/// pulled.
///
/// # Errors
/// If there is no state, if a supervisor runs on it, or if something could not be removed, all of which is listed.
pub(crate) fn remove(flags: Flags, removal: &Removal) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    // Checked first: opening the store would create one.
    store::read_global_key(&configuration.state_dir)?;
    let OpenStore { store, .. } = Store::open(&configuration.state_dir)?;
    let ownership = Ownership {
        device: store.device_uuid().clone(),
        former: store.former_uuids()?,
        exclusive: false,
        branding: configuration.branding.clone(),
    };
    let cache = compiled_code::Cache::new(
        configuration.state_dir.join("compiled"),
        &configuration.compiler,
        compiled_code::Limits::default(),
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let engines = engines::choose(
            &configuration,
            ownership,
            cache,
            walls::rule(&configuration),
            &[],
        )
        .await?;
        let images = if removal.all {
            store.image_records()?
        } else {
            Vec::new()
        };
        let grace = Duration::from_secs(removal.grace);
        let of_engines = engines.all().map(|engine| async {
            let engine = engine.as_ref();
            let mut left = remove_all(engine.containers().await, async |container| {
                // A container that does not stop is removed by force.
                let _ = engine.stop_container(&container.id, grace).await;
                engine.remove_container(&container.id).await
            })
            .await;
            let networks = engine.networks().await;
            left.extend(remove_all(networks, async |n| engine.remove_network(&n.name).await).await);
            if removal.all {
                let volumes = engine.volumes().await;
                left.extend(
                    remove_all(volumes, async |v| engine.remove_volume(&v.name).await).await,
                );
                for record in &images {
                    left.extend(problem(engine.remove_image(&record.image).await));
                }
            }
            left
        });
        let left: Vec<String> = join_all(of_engines).await.into_iter().flatten().collect();
        if !left.is_empty() {
            bail!("not everything could be removed: {}", left.join("; "));
        }
        Ok(())
    })
}

/// Removes all of `objects`; returns those that could not be removed.
async fn remove_all<T>(
    objects: Result<Vec<T>, EngineError>,
    remove: impl AsyncFn(&T) -> Result<(), EngineError>,
) -> Vec<String> {
    let objects = match objects {
        Ok(objects) => objects,
        Err(error) => return problem(Err(error)).into_iter().collect(),
    };
    let removals = objects
        .iter()
        .map(|object| async { problem(remove(object).await) });
    join_all(removals).await.into_iter().flatten().collect()
}

/// Returns the problem, with its cause. Objects that others use by now (an image, the network that devices share) are
/// left for them to remove.
fn problem(done: Result<(), EngineError>) -> Option<String> {
    match done {
        Ok(()) | Err(EngineError::InUse { .. }) => None,
        Err(error) => Some(error_chain(&error)),
    }
}
