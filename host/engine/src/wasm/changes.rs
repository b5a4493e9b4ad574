//! Notifies listeners of changes that happen without the engine: above all, what the containers'
//! processes write into their states.

use std::collections::HashMap;

use model::ContainerId;
use rustix::fs::inotify::WatchFlags;
use tokio_util::task::AbortOnDropHandle;
use wasm_service::record::STATE;

use super::inotify::Inotify;
use super::record::ContainerRecord;
use super::{Wasm, folders};
use crate::{EngineError, EngineEvent};

impl Wasm {
    /// Watches the containers' folders for as long as the engine exists.
    pub(super) fn watch_folders(&self) -> Result<(), EngineError> {
        let failed = |error| EngineError::failed("watch the wasm engine's folder", error);
        let inotify = Inotify::new().map_err(failed)?;
        let containers = self.shared.folders.containers.clone();
        let comings_and_goings = WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::ONLYDIR;
        let root = inotify
            .watch(&containers, comings_and_goings)
            .map_err(failed)?;
        let ownership = self.shared.ownership.clone();
        let mut watches: HashMap<i32, ContainerId> = HashMap::new();
        let add = move |watches: &mut HashMap<i32, ContainerId>, inotify: &Inotify, name: &str| {
            let folder = containers.join(name);
            let record = ContainerRecord::read(&folder);
            if !record.is_some_and(|record| ownership.covers(&record.config.labels)) {
                return;
            }
            let flags = WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
            if let (Ok(id), Ok(watch)) = (name.parse(), inotify.watch(&folder, flags)) {
                watches.insert(watch, id);
            }
        };
        for name in folders::names(&self.shared.folders.containers) {
            add(&mut watches, &inotify, &name);
        }
        let events = self.shared.events.clone();
        let task = tokio::spawn(async move {
            loop {
                let changes = match inotify.changes().await {
                    Ok(changes) => changes,
                    Err(error) => {
                        tracing::error!(%error, "changes of services are no longer noticed");
                        return;
                    }
                };
                for change in changes {
                    let name = change.name.as_ref().and_then(|name| name.to_str());
                    let event = if change.watch == root {
                        let name = name.unwrap_or_default();
                        if name.starts_with('.') {
                            continue;
                        }
                        add(&mut watches, &inotify, name);
                        match watches.values().find(|id| id.as_str() == name) {
                            Some(id) => EngineEvent::Container(id.clone()),
                            None => continue,
                        }
                    } else if change.watch < 0 {
                        EngineEvent::Other
                    } else if let Some(id) = watches.get(&change.watch)
                        && name == Some(STATE)
                    {
                        EngineEvent::Container(id.clone())
                    } else {
                        if name.is_none() {
                            // The system ended the watch because its folder is gone.
                            watches.remove(&change.watch);
                        }
                        continue;
                    };
                    let _ = events.send(event);
                }
            }
        });
        // This is called once, when the engine is opened.
        let _ = self.shared.folder_watch.set(AbortOnDropHandle::new(task));
        Ok(())
    }
}
