//! From any state to any target: steps taken in any order, many of them failing, reach the target. Nothing that the
//! target keeps is touched, nothing is created twice, and services are disturbed only under their locks.

use std::collections::{BTreeMap, BTreeSet};

use model::{ContainerState, CurrentService, DesiredApp, EngineKind, UpdateStrategy};
use plan::{EngineHealth, Subject, forecast, plan};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::build::{Device, Docker, Service, Target, Wasm, device, image_ref, service, target};
use crate::world::World;

/// The random parts of one service.
#[derive(Debug, Clone)]
struct RandomService {
    image: &'static str,
    config: &'static str,
    volume: bool,
    network: bool,
    /// Another service, by its index, which must be lower than this one's.
    joined: Option<usize>,
    after: Option<usize>,
    running: bool,
    strategy: UpdateStrategy,
    requires_reboot: bool,
}

const STRATEGIES: [UpdateStrategy; 5] = [
    UpdateStrategy::DownloadThenKill,
    UpdateStrategy::DownloadThenKill,
    UpdateStrategy::KillThenDownload,
    UpdateStrategy::DeleteThenDownload,
    UpdateStrategy::HandOver,
];

const SERVICES: [&str; 4] = ["a", "b", "c", "d"];

fn drawn() -> impl Strategy<Value = RandomService> {
    (
        select(&["x:1", "x:2", "y:1", "wasm:1", "wasm:2"][..]),
        select(&["", "", "", "other"][..]),
        any::<bool>(),
        any::<bool>(),
        prop::option::weighted(0.2, 0..3_usize),
        prop::option::weighted(0.3, 0..3_usize),
        prop::bool::weighted(0.85),
        select(&STRATEGIES[..]),
        prop::bool::weighted(0.2),
    )
        .prop_map(
            |(
                image,
                config,
                volume,
                network,
                joined,
                after,
                running,
                strategy,
                requires_reboot,
            )| RandomService {
                image,
                config,
                volume,
                network,
                joined,
                after,
                running,
                strategy,
                requires_reboot,
            },
        )
}

/// Services of one app, some left out. The links between them go backwards, so there is no cycle.
fn services() -> impl Strategy<Value = Vec<Option<RandomService>>> {
    vec(prop::option::weighted(0.75, drawn()), SERVICES.len())
}

fn build(app: &str, all: &[Option<RandomService>], at: usize, release: u64) -> Option<Service> {
    let drawn = all[at].clone()?;
    let before = |place: usize| (place < at && all[place].is_some()).then(|| SERVICES[place]);
    let mut built = service(app, SERVICES[at], drawn.image)
        .with(drawn.config)
        .strategy(drawn.strategy)
        .release(release);
    if drawn.volume {
        built = built.volume("data");
    }
    match drawn.joined.and_then(before) {
        // A service runs on the engine of its image, and a network stack cannot be shared across engines.
        Some(host) if is_wasm(drawn.image) == is_wasm(image_of(all, host)) => {
            built = built.in_network_of(host);
        }
        _ if drawn.network => built = built.network("front"),
        _ => {}
    }
    if let Some(dependency) = drawn.after.and_then(before) {
        built = built.after(&[dependency]);
    }
    if !drawn.running {
        built = built.stopped();
    }
    if drawn.requires_reboot {
        built = built.requires_reboot();
    }
    Some(built)
}

fn image_of(all: &[Option<RandomService>], name: &str) -> &'static str {
    let place = SERVICES
        .iter()
        .position(|service| *service == name)
        .unwrap();
    all[place].as_ref().map_or("x:1", |drawn| drawn.image)
}

fn is_wasm(image: &str) -> bool {
    image.starts_with("wasm")
}

fn engine_of(service: &Service) -> EngineKind {
    if is_wasm(service.0.config.image.as_str()) {
        Wasm
    } else {
        Docker
    }
}

/// Services, release, whether a network and a volume exist in addition to those that are used, and whether they have
/// another configuration.
type RandomTarget = (Vec<Option<RandomService>>, u64, [bool; 2], bool);

/// Draws one desired app; `None` for an app that must be removed.
fn wanted_app() -> impl Strategy<Value = Option<RandomTarget>> {
    prop::option::weighted(
        0.85,
        (services(), 1..3_u64, any::<[bool; 2]>(), any::<bool>()),
    )
}

/// One existing app: its services, the release of each, the states of its containers, and its other objects.
#[derive(Debug, Clone)]
struct RandomApp {
    services: Vec<Option<RandomService>>,
    release: u64,
    states: Vec<ContainerState>,
    doubled: Option<usize>,
    joined_right: bool,
    stopped: bool,
    components: [Option<&'static str>; 4],
    commit: bool,
}

fn held_app() -> impl Strategy<Value = RandomApp> {
    let state = select(
        &[
            ContainerState::Running,
            ContainerState::Running,
            ContainerState::Running,
            ContainerState::Created,
            ContainerState::Exited,
            ContainerState::Paused,
            ContainerState::Restarting,
            ContainerState::Dead,
            ContainerState::Removing,
        ][..],
    );
    let component = || prop::option::weighted(0.7, select(&["", "", "", "other"][..]));
    (
        services(),
        1..3_u64,
        vec(state, SERVICES.len()),
        prop::option::weighted(0.2, 0..SERVICES.len()),
        prop::bool::weighted(0.8),
        any::<bool>(),
        [component(), component(), component(), component()],
        any::<bool>(),
    )
        .prop_map(
            |(services, release, states, doubled, joined_right, stopped, components, commit)| {
                RandomApp {
                    services,
                    release,
                    states,
                    doubled,
                    joined_right,
                    stopped,
                    components,
                    commit,
                }
            },
        )
}

fn add(device: Device, app: &str, held: &RandomApp) -> Device {
    let mut device = device;
    let mut ids = BTreeMap::new();
    for at in 0..SERVICES.len() {
        let Some(built) = build(app, &held.services, at, held.release) else {
            continue;
        };
        let engine = engine_of(&built);
        if held.doubled == Some(at) {
            let older = built.clone().release(9);
            device = device.container_on(engine, older, ContainerState::Running);
        }
        let host = match &built.0.config.network_mode {
            model::NetworkMode::Service(host) => Some(host.clone()),
            _ => None,
        };
        let name = built.0.key.service.clone();
        device = device.container_on(engine, built, held.states[at]);
        let id = device.0.services.last().unwrap().container.to_string();
        if held.stopped && held.states[at] == ContainerState::Exited {
            device = device.stopped(&id);
        }
        if let Some(host) = host {
            let joined: Option<&String> = ids.get(&host);
            device = match joined {
                Some(joined) if held.joined_right => device.joined_to(joined),
                _ => device.joined_to("long-gone"),
            };
        }
        ids.insert(name, id);
    }
    for (place, engine) in [(0, Docker), (1, Wasm)] {
        if let Some(config) = held.components[place] {
            device = device.network_on(engine, app, "front", config);
        }
        if let Some(config) = held.components[place + 2] {
            device = device.volume_on(engine, app, "data", config);
        }
    }
    if held.commit {
        device = device.commit(app, "c1");
    }
    device
}

prop_compose! {
    fn any_device()(
        shop in held_app(),
        cafe in held_app(),
        images in vec(any::<bool>(), 5),
        moved in any::<bool>(),
        local_mode in any::<bool>(),
    ) -> Device {
        let mut device = add(add(device().with_wasm().boot("boot0"), "shop", &shop), "cafe", &cafe);
        let all = ["x:1", "x:2", "y:1", "wasm:1", "wasm:2"];
        for (name, held) in all.iter().zip(images) {
            device = match held {
                true if is_wasm(name) => device.image_on(Wasm, name),
                true if *name == "x:1" && moved => device.moved_image(name),
                true => device.image(name),
                false => device,
            };
            device = device.recorded(name);
        }
        if local_mode {
            device = device.local_mode();
        }
        device
    }
}

prop_compose! {
    fn any_target()(shop in wanted_app(), cafe in wanted_app()) -> Target {
        let mut desired = target();
        for (app, drawn) in [("shop", shop), ("cafe", cafe)] {
            let Some((services, release, components, changed)) = drawn else {
                continue;
            };
            desired = desired.app(app, release);
            let config = if changed { "other" } else { "" };
            let uses = |of: fn(&RandomService) -> bool| services.iter().flatten().any(of);
            if components[0] || uses(|drawn| drawn.network) {
                desired = desired.network(app, "front", config);
            }
            if components[1] || uses(|drawn| drawn.volume) {
                desired = desired.volume(app, "data", config);
            }
            for at in 0..SERVICES.len() {
                if let Some(service) = build(app, &services, at, release) {
                    desired = desired.service(service);
                }
            }
        }
        desired
    }
}

/// Returns the containers that the target gives no reason to touch, except for renaming: found without the planner,
/// from the documented rules.
fn untouchable(device: &Device, target: &Target) -> BTreeSet<String> {
    let state = &device.0;
    let keeps = |container: &&CurrentService| {
        let Some(app) = target.0.apps.get(&container.key.app) else {
            return false;
        };
        let Some(service) = app.services.get(&container.key.service) else {
            return false;
        };
        let mut siblings = state.services.iter().filter(|c| c.key == container.key);
        let alone = siblings.all(|sibling| sibling.container == container.container);
        let image = state
            .images
            .iter()
            .find(|image| image.references.contains(&service.config.image));
        alone
            && matches!(
                container.state,
                ContainerState::Running | ContainerState::Paused | ContainerState::Restarting
            )
            && service.running
            && container.digest.as_ref() == Some(&service.digest)
            && image.is_none_or(|image| image.id == container.engine_image)
            && !matches!(service.config.network_mode, model::NetworkMode::Service(_))
            && uses_nothing_changed(device, app, container)
    };
    let containers = state.services.iter().filter(keeps);
    containers.map(|c| c.container.to_string()).collect()
}

fn uses_nothing_changed(device: &Device, app: &DesiredApp, container: &CurrentService) -> bool {
    let service = &app.services[&container.key.service];
    let volumes = app.volumes.values().map(|v| (&v.engine_name, &v.digest));
    let networks = app.networks.values().map(|n| (&n.engine_name, &n.digest));
    let held = device.0.volumes.iter().chain(&device.0.networks);
    let mut changed = volumes.chain(networks).filter(|(name, digest)| {
        held.clone().any(|held| {
            held.engine == container.engine
                && held.name == **name
                && held.digest.as_ref() != Some(*digest)
        })
    });
    let text = format!("{:?}", service.config);
    changed.all(|(name, _)| !text.contains(&format!("\"{name}\"")))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        // A failure prints its complete input; what it shows becomes a picture.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_state_becomes_any_target(
        device in any_device(),
        target in any_target(),
        choices in vec(any::<u32>(), 64),
        failures in 0..12_u32,
        silent_until in 0..6_u32,
    ) {
        let kept = untouchable(&device, &target);
        let mut world = World::new(device, choices, failures, silent_until);
        let passes = world.run(&target.0);
        prop_assert!(passes.is_ok(), "{}", passes.unwrap_err());
        world.check_is(&target.0)?;
        for id in kept {
            prop_assert!(!world.disturbed.contains(&id), "{id} was disturbed");
        }
    }

    #[test]
    fn what_is_foreseen_leads_to_the_target(device in any_device(), target in any_target()) {
        // The forecast derives the engine of an image that is not present yet from its reference; here the registry has
        // already reported it.
        let mut device = device;
        for name in ["x:1", "x:2", "y:1", "wasm:1", "wasm:2"] {
            let kind = if is_wasm(name) { Wasm } else { Docker };
            device.0.image_kinds.insert(image_ref(name), kind);
        }
        let foreseen = forecast(&device.0, &target.0);
        prop_assert!(!foreseen.cut_short);
        prop_assert_eq!(&foreseen.stuck, &vec![]);
        let stages: Vec<usize> = foreseen.steps.iter().map(|step| step.stage).collect();
        prop_assert!(stages.is_sorted());
        let mut world = World::new(device, vec![0], 0, 0);
        let followed = world.follow(foreseen);
        prop_assert!(followed.is_ok(), "{}", followed.unwrap_err());
        world.check_is(&target.0)?;
    }

    #[test]
    fn what_is_foreseen_begins_with_what_is_planned(
        device in any_device(),
        target in any_target(),
    ) {
        let planned = plan(&device.0, &target.0);
        let foreseen = forecast(&device.0, &target.0);
        let first = foreseen.steps.iter().filter(|step| step.stage == 1);
        let first: BTreeSet<_> = first.map(plan::ForecastStep::subject).collect();
        for step in planned.steps {
            match step {
                plan::Step::ReleaseLocks { .. } => {}
                plan::Step::UnderLocks(locked) => for work in locked.work {
                    prop_assert!(first.contains(&Subject::Service(work.service)));
                },
                step => prop_assert!(first.contains(&step.subject()), "{}", step),
            }
        }
    }

    #[test]
    fn a_plan_is_the_same_each_time(device in any_device(), target in any_target()) {
        prop_assert_eq!(plan(&device.0, &target.0), plan(&device.0, &target.0));
    }

    #[test]
    fn nothing_is_planned_for_what_is_busy_held_or_silent(
        device in any_device(),
        target in any_target(),
        picks in vec(any::<bool>(), 32),
    ) {
        // Every subject of a first plan is made busy, or held after a failure.
        let mut device = device;
        let mut barred = BTreeSet::new();
        for (step, busy) in plan(&device.0, &target.0).steps.iter().zip(picks) {
            let subject = step.subject();
            // A step that only concerns the store never prevents a release of locks.
            if matches!(subject, Subject::App(_)) {
                continue;
            }
            barred.insert(subject.clone());
            device = if busy {
                device.busy(subject)
            } else {
                device.failed(subject, "it failed")
            };
        }
        for step in plan(&device.0, &target.0).steps {
            prop_assert!(!barred.contains(&step.subject()), "{step}");
        }
        device.0.engines.insert(Docker, EngineHealth::Silent("gone".into()));
        device.0.services.retain(|service| service.engine != Docker);
        device.0.images.retain(|image| image.engine != Docker);
        device.0.networks.retain(|network| network.engine != Docker);
        device.0.volumes.retain(|volume| volume.engine != Docker);
        for step in plan(&device.0, &target.0).steps {
            prop_assert!(!format!("{step:?}").contains("engine: Docker"), "{step}");
        }
    }
}
