//! Each component and each caller that means harm, one after the other, against a supervisor. Two supervisors share
//! the components.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Instant;

use hostile::attack::Attack;
use hostile::component::Interface;
use hostile::plugin_folder::PluginFolder;
use hostile::verdict::{Victim, report};
use hostile::{attack, calls, exchange, folder};
use tests::Supervisor;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn components_harm_nobody_and_are_named() {
    let interface = Interface::read().unwrap();
    let (mut components, mut failures) = (Vec::new(), Vec::new());
    for attack in attack::read_all(&folder("components"), "wat", ";;").unwrap() {
        match interface.build(&attack) {
            Ok(file) => components.push((attack, file)),
            Err(error) => failures.push((attack.name, error)),
        }
    }
    let queue = Mutex::new(components.iter());
    let quiet = Arc::new(Supervisor::on_wasm().start().await);
    let (one, other) = futures::join!(
        attack_with(&components, &queue, &quiet),
        attack_with(&components, &queue, &quiet)
    );
    failures.extend(one.into_iter().chain(other));
    report(&failures);
}

/// Attacks a device with one component of the queue after the other, and returns the attacks that succeeded.
async fn attack_with(
    components: &[(Attack, Vec<u8>)],
    queue: &Mutex<std::slice::Iter<'_, (Attack, Vec<u8>)>>,
    quiet: &Arc<Supervisor>,
) -> Vec<(String, anyhow::Error)> {
    let folder = PluginFolder::new(components).unwrap();
    let device = folder.device().start().await;
    let mut victim = Victim::new(device, Arc::clone(quiet)).await.unwrap();
    let mut failures = Vec::new();
    let next = || queue.lock().unwrap().next();
    while let Some((attack, file)) = next() {
        let began = Instant::now();
        if let Err(failure) = calls::attack(&mut victim, &folder, attack, file).await {
            failures.push((attack.name.clone(), failure));
        }
        println!("{}", victim.line(attack, began.elapsed()));
    }
    failures
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_harm_nobody_and_are_refused() {
    let quiet = Arc::new(Supervisor::on_wasm().start().await);
    let device = Supervisor::on_wasm().start().await;
    let mut victim = Victim::new(device, quiet).await.unwrap();
    let mut failures = Vec::new();
    for attack in &attack::read_all(&folder("callers"), "txt", "#").unwrap() {
        let began = Instant::now();
        if let Err(failure) = exchange::attack(&mut victim, attack).await {
            failures.push((attack.name.clone(), failure));
        }
        println!("{}", victim.line(attack, began.elapsed()));
    }
    report(&failures);
}

/// A file without its sentence is not accepted.
#[test]
fn there_are_sixty_components_and_forty_callers() {
    if std::env::var_os("HOSTILE").is_some() {
        return;
    }
    for (name, ending, mark, least) in
        [("components", "wat", ";;", 60), ("callers", "txt", "#", 40)]
    {
        let attacks = attack::read_all(&folder(name), ending, mark).unwrap();
        assert!(attacks.len() >= least, "{name}: {}", attacks.len());
        let mut sentences: Vec<_> = attacks.iter().map(|attack| &attack.sentence).collect();
        sentences.sort();
        sentences.dedup();
        assert_eq!(sentences.len(), attacks.len(), "two {name} try the same");
    }
}
