//! The events on a device: what it runs, its new target, who holds a lock, and what else is requested.

use std::collections::BTreeMap;

use model::{Action, Verb};
use serde_json::{Map, Value, json};

use super::device::{Image, UUID};
use super::draw::Draw;
use super::life::settle;

/// Services of app 1 and of app 2: no name occurs in both.
const SERVICES: [[&str; 4]; 2] = [
    ["web", "db", "proxy", "cache"],
    ["api", "queue", "worker", "mail"],
];
const VOLUMES: [&str; 2] = ["data", "logs"];
const NETWORKS: [&str; 2] = ["front", "back"];
const STRATEGIES: [&str; 6] = [
    "download-then-kill",
    "download-then-kill",
    "download-then-kill",
    "kill-then-download",
    "delete-then-download",
    "hand-over",
];

#[derive(Debug, Clone, PartialEq)]
struct DrawnService {
    image: String,
    revision: u64,
    strategy: &'static str,
    volumes: Vec<&'static str>,
    networks: Vec<&'static str>,
    depends_on: Vec<&'static str>,
    running: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct DrawnApp {
    release: u64,
    services: BTreeMap<&'static str, DrawnService>,
    /// With the revisions of their configuration.
    volumes: BTreeMap<&'static str, u64>,
    networks: BTreeMap<&'static str, u64>,
}

/// By their numbers: 1 and 2.
type DrawnApps = BTreeMap<u64, DrawnApp>;

/// A user's lock.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UserLock {
    /// `APP/SERVICE`.
    pub(super) folder: String,
    pub(super) app: u64,
    pub(super) is_overridden: bool,
}

/// A request in addition to the target.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DrawnAction {
    pub(super) app: u64,
    pub(super) verb: Verb,
    force: bool,
}

#[derive(Debug)]
pub(super) struct Story {
    /// Whether the targets come from a cloud.
    pub(super) is_managed: bool,
    before: DrawnApps,
    after: DrawnApps,
    pub(super) lock: Option<UserLock>,
    pub(super) action: Option<DrawnAction>,
    /// Whether the action is requested before the target is set, or right after.
    pub(super) acts_first: bool,
}

impl Story {
    pub(super) fn draw(draw: &mut Draw) -> Story {
        let mut before = DrawnApps::new();
        before.insert(1, DrawnApp::draw(1, draw));
        if draw.once_in(2) {
            before.insert(2, DrawnApp::draw(2, draw));
        }
        let mut after = before.clone();
        for _ in 0..1 + draw.below(5) {
            change(&mut after, draw);
        }
        let lock = draw.once_in(4).then(|| UserLock::draw(&before, draw));
        let action = draw.once_in(4).then(|| DrawnAction::draw(&before, draw));
        Story {
            is_managed: draw.once_in(2),
            before,
            after,
            lock: lock.flatten(),
            action,
            acts_first: draw.once_in(2),
        }
    }

    /// Returns a device that runs the initial state, at rest.
    pub(super) fn begin(&self, empty: &Image) -> Image {
        let ready = settle(empty.copy(), self, self.body(&self.before));
        ready.engine.witness(|seen| seen.disturbed.clear());
        if let Some(lock) = &self.lock {
            let folder = ready.locks().join(&lock.folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("updates.lock"), "a user's").unwrap();
        }
        ready
    }

    pub(super) fn target(&self) -> Value {
        self.body(&self.after)
    }

    pub(super) fn action(&self) -> Option<Action> {
        let drawn = self.action.clone()?;
        Some(Action {
            app: self.uuid(drawn.app).parse().unwrap(),
            verb: drawn.verb,
            force: drawn.force,
        })
    }

    /// Returns an app's uuid; a local target names its apps by their numbers.
    fn uuid(&self, app: u64) -> String {
        if self.is_managed {
            format!("fleet{app}")
        } else {
            app.to_string()
        }
    }

    /// Returns the services in the target, as `APP/SERVICE`.
    pub(super) fn services(&self) -> Vec<String> {
        let apps = self.after.iter();
        let named = |(number, app): (&u64, &DrawnApp)| {
            let names = app.services.keys();
            let named = names.map(|name| format!("{number}/{name}"));
            named.collect::<Vec<_>>()
        };
        apps.flat_map(named).collect()
    }

    /// Returns the app whose services must not be disturbed until its user releases the lock.
    pub(super) fn locked_app(&self) -> Option<u64> {
        let lock = self.lock.as_ref()?;
        let forced = self.action.as_ref().is_some_and(|action| action.force);
        (!lock.is_overridden && !forced).then_some(lock.app)
    }

    /// Returns the app that is purged although the target no longer contains it: what remains of it depends on which
    /// comes first.
    pub(super) fn purged_while_it_goes(&self) -> Option<u64> {
        let purge = self.action.as_ref()?;
        let goes = !self.after.contains_key(&purge.app);
        (purge.verb == Verb::Purge && goes).then_some(purge.app)
    }

    fn body(&self, apps: &DrawnApps) -> Value {
        let apps: Map<String, Value> = apps
            .iter()
            .map(|(number, app)| (self.uuid(*number), app.json(*number, self.is_managed)))
            .collect();
        let device = json!({ "name": "bench", "config": {}, "apps": apps });
        if self.is_managed {
            json!({ UUID: device })
        } else {
            json!({ "local": device })
        }
    }
}

/// Makes one change to the target.
fn change(apps: &mut DrawnApps, draw: &mut Draw) {
    if draw.once_in(10) {
        // An app is added or removed.
        let number = 1 + draw.below(2);
        if apps.remove(&number).is_none() {
            apps.insert(number, DrawnApp::draw(number, draw));
        }
        return;
    }
    let numbers: Vec<u64> = apps.keys().copied().collect();
    if numbers.is_empty() {
        return;
    }
    let number = *draw.one_of(&numbers);
    let Some(app) = apps.get_mut(&number) else {
        return;
    };
    let names: Vec<&'static str> = app.services.keys().copied().collect();
    match draw.below(10) {
        // A release that changes only names.
        0 | 1 => app.release += 1,
        2 | 3 => app.put_service(number, draw),
        4 if !names.is_empty() => {
            app.services.remove(draw.one_of(&names));
        }
        5 => change_component(&mut app.networks, draw.one_of::<&str>(&NETWORKS), draw),
        6 => change_component(&mut app.volumes, draw.one_of::<&str>(&VOLUMES), draw),
        _ if names.is_empty() => {}
        _ => {
            let name = *draw.one_of(&names);
            if let Some(service) = app.services.get_mut(name) {
                match draw.below(4) {
                    0 => service.running = !service.running,
                    1 => service.revision += 1,
                    _ => service.image = format!("{name}:{}", 1 + draw.below(4)),
                }
            }
        }
    }
    app.tidy();
}

/// Adds, removes or changes it.
fn change_component(all: &mut BTreeMap<&'static str, u64>, name: &'static str, draw: &mut Draw) {
    let revision = all.remove(name);
    if revision.is_none() || draw.once_in(2) {
        all.insert(name, revision.map_or(0, |revision| revision + 1));
    }
}

impl UserLock {
    /// Returns `None` if the drawn app has no services.
    fn draw(apps: &DrawnApps, draw: &mut Draw) -> Option<UserLock> {
        let apps: Vec<_> = apps.iter().collect();
        let (number, app) = draw.one_of(&apps);
        let names: Vec<&str> = app.services.keys().copied().collect();
        if names.is_empty() {
            return None;
        }
        Some(UserLock {
            folder: format!("{number}/{}", draw.one_of(&names)),
            app: **number,
            is_overridden: draw.once_in(3),
        })
    }
}

impl DrawnAction {
    fn draw(apps: &DrawnApps, draw: &mut Draw) -> DrawnAction {
        let apps: Vec<_> = apps.iter().collect();
        let (number, app) = draw.one_of(&apps);
        let names: Vec<&str> = app.services.keys().copied().collect();
        let verb = match draw.below(3) {
            0 => Verb::Purge,
            1 if !names.is_empty() => Verb::Restart(Some(draw.one_of(&names).parse().unwrap())),
            _ => Verb::Restart(None),
        };
        DrawnAction {
            app: **number,
            verb,
            force: draw.once_in(4),
        }
    }
}

impl DrawnApp {
    fn draw(number: u64, draw: &mut Draw) -> DrawnApp {
        let none_changed = |names: Vec<&'static str>| names.into_iter().map(|name| (name, 0));
        let mut app = DrawnApp {
            release: 1,
            services: BTreeMap::new(),
            volumes: none_changed(draw.some_of(&VOLUMES)).collect(),
            networks: none_changed(draw.some_of(&NETWORKS)).collect(),
        };
        for _ in 0..1 + draw.below(4) {
            app.put_service(number, draw);
        }
        app
    }

    fn put_service(&mut self, number: u64, draw: &mut Draw) {
        let name = *draw.one_of(&SERVICES[number as usize - 1]);
        let image = if draw.once_in(6) {
            "shared:1".to_owned()
        } else {
            format!("{name}:{}", 1 + draw.below(3))
        };
        let volumes: Vec<_> = self.volumes.keys().copied().collect();
        let networks: Vec<_> = self.networks.keys().copied().collect();
        // Only earlier ones, so that there are no cycles.
        let mut earlier: Vec<_> = self.services.keys().copied().collect();
        earlier.retain(|other| *other < name);
        let service = DrawnService {
            image,
            revision: draw.below(3),
            strategy: draw.one_of::<&str>(&STRATEGIES),
            volumes: draw.some_of(&volumes),
            networks: draw.some_of(&networks),
            depends_on: draw.some_of(&earlier),
            running: !draw.once_in(8),
        };
        self.services.insert(name, service);
    }

    /// Drops references that a change has made invalid.
    fn tidy(&mut self) {
        let names: Vec<_> = self.services.keys().copied().collect();
        for service in self.services.values_mut() {
            let (volumes, networks) = (&self.volumes, &self.networks);
            service.volumes.retain(|name| volumes.contains_key(name));
            service.networks.retain(|name| networks.contains_key(name));
            service.depends_on.retain(|name| names.contains(name));
        }
    }

    fn json(&self, number: u64, is_managed: bool) -> Value {
        let services: Map<String, Value> = self
            .services
            .iter()
            .map(|(name, service)| {
                let mut known = SERVICES.iter().flatten();
                let id = known.position(|known| known == name).unwrap() + 1;
                if is_managed {
                    ((*name).to_owned(), service.cloud_form(id))
                } else {
                    (id.to_string(), service.local(name, id))
                }
            })
            .collect();
        let made = |all: &BTreeMap<&'static str, u64>| {
            let all = all.iter().map(|(name, revision)| {
                let config = json!({ "labels": { "revision": revision.to_string() } });
                ((*name).to_owned(), config)
            });
            all.collect::<Map<_, _>>()
        };
        let (volumes, networks) = (made(&self.volumes), made(&self.networks));
        let commit = format!("c{}", self.release);
        if is_managed {
            json!({
                "id": number,
                "name": "shop",
                "releases": { commit: {
                    "id": self.release,
                    "services": services,
                    "volumes": volumes,
                    "networks": networks,
                } },
            })
        } else {
            json!({
                "name": "shop",
                "commit": commit,
                "releaseId": self.release.to_string(),
                "services": services,
                "volumes": volumes,
                "networks": networks,
            })
        }
    }
}

impl DrawnService {
    fn local(&self, name: &str, id: usize) -> Value {
        let ids = json!({ "imageId": id, "serviceName": name });
        merged([ids, self.rest(), self.composition()])
    }

    fn cloud_form(&self, id: usize) -> Value {
        let ids = json!({ "id": id, "image_id": id, "composition": self.composition() });
        merged([ids, self.rest()])
    }

    fn composition(&self) -> Value {
        let volumes: Vec<String> = self.volumes.iter().map(|v| format!("{v}:/{v}")).collect();
        json!({
            "volumes": volumes,
            "networks": self.networks,
            "depends_on": self.depends_on,
        })
    }

    fn rest(&self) -> Value {
        json!({
            "image": self.image,
            "environment": { "REVISION": self.revision.to_string() },
            "labels": { "io.platform.update.strategy": self.strategy },
            "running": self.running,
        })
    }
}

fn merged(all: impl IntoIterator<Item = Value>) -> Value {
    let entries = all
        .into_iter()
        .flat_map(|one| one.as_object().unwrap().clone());
    Value::Object(entries.collect())
}
