//! The results of an update.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use model::Container;
use reconcile::Reconciler;
use store::Store;

use super::device::{Image, services_by_id};
use super::story::Story;

/// The data by which two runs of the same update are compared, one line each.
pub(super) struct EndState {
    /// Names, images, states and labels.
    containers: Vec<String>,
    networks: Vec<String>,
    volumes: Vec<String>,
    images: Vec<String>,
    /// The store's data other than the target: releases, images, definitions, unfinished work.
    stored: Vec<String>,
}

impl EndState {
    /// Returns surplus lines (`+`) and missing lines (`-`).
    pub(super) fn compare(&self, expected: &EndState, story: &Story) -> Vec<String> {
        let pairs = [
            (&self.containers, &expected.containers),
            (&self.networks, &expected.networks),
            (&self.volumes, &expected.volumes),
            (&self.images, &expected.images),
            (&self.stored, &expected.stored),
        ];
        let mut differences = Vec::new();
        for (found, expected) in pairs {
            let more = found.iter().filter(|line| !expected.contains(line));
            differences.extend(more.map(|line| format!("+ {line}")));
            let less = expected.iter().filter(|line| !found.contains(line));
            differences.extend(less.map(|line| format!("- {line}")));
        }
        // Local mode keeps unused images, and after a kill that may include one that was about to be removed.
        if !story.is_managed {
            differences.retain(|line| !line.starts_with("+ image "));
        }
        if let Some(app) = story.purged_while_it_goes() {
            differences.retain(|line| !line.contains(&format!(" {app}_")));
        }
        differences
    }
}

pub(super) struct Picture {
    pub(super) state: EndState,
    /// Ids of containers.
    pub(super) ids: BTreeSet<String>,
    services: Vec<String>,
    /// Containers that were stopped or removed, by id.
    pub(super) disturbed: BTreeSet<String>,
    /// With the number of each.
    pub(super) volumes: BTreeMap<String, u64>,
    violations: Vec<String>,
    locks: Vec<PathBuf>,
    problems: Vec<String>,
}

impl Picture {
    pub(super) fn take(reconciler: &Reconciler, store: &Store, image: &Image) -> Picture {
        let engine = &image.engine;
        let containers = engine.held_containers();
        let networks = engine.held_networks();
        let volumes = engine.held_volumes();
        let images = engine.held_images();
        Picture {
            ids: containers.iter().map(|c| c.id.to_string()).collect(),
            services: services_by_id(engine).into_values().collect(),
            disturbed: engine.witness(|seen| seen.disturbed.keys().cloned().collect()),
            volumes: engine.witness(|seen| seen.births.clone()),
            violations: engine.witness(|seen| seen.violations.clone()),
            locks: files_below(&image.folder.path().join("host")),
            problems: reconciler.problems(),
            state: EndState {
                networks: sorted(networks.iter().map(|n| with_labels(&n.name, &n.labels))),
                volumes: sorted(volumes.iter().map(|v| with_labels(&v.name, &v.labels))),
                images: sorted(images.iter().map(|image| format!("image {image}"))),
                stored: stored(store, &containers),
                containers: sorted(containers.iter().map(|container| {
                    let what = (&container.name, &container.image, container.state);
                    with_labels(&format!("{what:?}"), &container.labels)
                })),
            },
        }
    }

    /// Checks what holds for every update.
    pub(super) fn check(&self, story: &Story) {
        let mut services = self.services.clone();
        services.sort();
        let mut expected = story.services();
        expected.sort();
        assert_eq!(services, expected, "one container each");
        assert_eq!(self.violations, [""; 0]);
        assert_eq!(self.locks, Vec::<PathBuf>::new(), "left locked");
        assert_eq!(self.problems, [""; 0]);
    }
}

fn stored(store: &Store, containers: &[Container]) -> Vec<String> {
    // The same container has another id in another run.
    let named = |text: &str| {
        let mut found = containers.iter();
        let found = found.find(|container| container.id.as_str() == text);
        found.map_or_else(|| text.to_owned(), |container| container.name.clone())
    };
    let commits = store.commits().unwrap().into_iter();
    let commits = commits.map(|(app, commit)| format!("app {app} at {commit}"));
    let definitions = store.definitions().unwrap().into_iter();
    let definitions = definitions.map(|d| format!("definition of {} {}", d.subject, d.digest));
    // The state of local mode and the lock marker are also included.
    let intents = store.intents().unwrap().into_iter();
    let intents = intents.map(|i| format!("intent {} {} {}", i.kind, named(&i.key), i.value));
    let images = store.image_records().unwrap().into_iter();
    let images = images.map(|record| format!("image {record:?}"));
    sorted(commits.chain(definitions).chain(intents).chain(images))
}

fn with_labels<'a>(
    name: &str,
    labels: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> String {
    let labels: BTreeMap<_, _> = labels.into_iter().collect();
    format!("{name} {labels:?}")
}

fn sorted(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = all.collect();
    all.sort();
    all
}

/// Returns every file: there are only locks, and their drafts.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()))
        } else {
            found.push(entry.path())
        }
    }
    found
}
