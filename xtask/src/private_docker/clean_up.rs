//! Ends the programs of a private engine and removes what they leave outside their folder: containers' processes,
//! mounts, bridges. Only things that belong to one of our folders are touched.

use std::fs;
use std::path::Path;

use bollard::Docker;
use bollard::query_parameters::{ListContainersOptionsBuilder, PruneNetworksOptions};
use rustix::process::{Signal, kill_process};

use crate::docker_images::remove_containers;
use crate::interrupted::runtime;
use crate::owned_folder;
use crate::processes::{self, read_pid};

use super::addresses::Addresses;
use super::{STOP_TIMEOUT, quietly};

/// Ends everything that was started in `folder`, by any process.
pub(super) fn clean_folder(folder: &Path) {
    let socket = folder.join("docker.sock");
    remove_objects(&format!("unix://{}", socket.display()));
    for name in ["docker-registry", "dockerd"] {
        let started = read_pid(&folder.join(format!("{name}.started")));
        if let Some(pid) = started
            && processes::names(pid, folder)
        {
            processes::end(pid, Signal::TERM, STOP_TIMEOUT);
        }
    }
    remove_traces(folder);
}

/// Removes all containers and networks of the engine, so that it ends at once and leaves no bridges.
pub(super) fn remove_objects(uri: &str) {
    let Ok(runtime) = runtime() else { return };
    runtime.block_on(async {
        let Ok(docker) = Docker::connect_with_host(uri) else {
            return;
        };
        let Ok(docker) = docker.negotiate_version().await else {
            return;
        };
        let all = ListContainersOptionsBuilder::new().all(true).build();
        let _ = remove_containers(&docker, all).await;
        let _ = docker.prune_networks(None::<PruneNetworksOptions>).await;
    });
}

/// Removes the remains after the programs' end: processes of containers, mounts, bridges, the folder.
pub(super) fn remove_traces(folder: &Path) {
    // The engine's containerd and its shims.
    for pid in processes::that_name(folder) {
        let _ = kill_process(pid, Signal::KILL);
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let below: Vec<&str> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|mount| Path::new(mount).starts_with(folder))
        .collect();
    for mount in below.iter().rev() {
        let _ = quietly("umount", &["--lazy", mount]);
    }
    for bridge in bridges_of(folder) {
        let _ = quietly("ip", &["link", "delete", &bridge]);
    }
    if let Some(addresses) = Addresses::load(folder) {
        addresses.release();
    }
    owned_folder::remove(folder);
}

/// Returns the bridges of the networks that the engine of `folder` had when it ended. A remaining one would intercept
/// the traffic of the next engine's networks with the same addresses, above all the supervisor's own.
fn bridges_of(folder: &Path) -> Vec<String> {
    // The engine's database, which stores each network under a key that ends with its id.
    let database = fs::read(folder.join("data/network/files/local-kv.db")).unwrap_or_default();
    let key = b"/network/v1.0/bridge/";
    let mut bridges = Vec::new();
    for start in 0..database.len() {
        let Some(id) = database[start..].strip_prefix(key) else {
            continue;
        };
        let id = id.get(..12).unwrap_or_default();
        if id.iter().all(u8::is_ascii_hexdigit) && id.len() == 12 {
            bridges.push(format!("br-{}", String::from_utf8_lossy(id)));
        }
    }
    bridges.sort();
    bridges.dedup();
    bridges
        .into_iter()
        .filter(|bridge| Path::new("/sys/class/net").join(bridge).exists())
        .collect()
}
