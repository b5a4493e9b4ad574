use model::{Container, ContainerId, ContainerState, EngineImageId, ImageRef};
use serde_json::json;

use super::*;
use crate::fixtures::shop;

const DOCKER: EngineKind = EngineKind::Docker;
const WASM: EngineKind = EngineKind::Wasm;

fn container(name: &str) -> Container {
    let branding = Branding::default();
    let labels = [
        ("app-uuid", "fleet"),
        ("app-id", "1"),
        ("service-id", "1"),
        ("service-name", name),
        (CONFIG_DIGEST_LABEL, "d1"),
    ];
    let labels = labels.map(|(label, value)| (branding.label(label), value.to_owned()));
    Container {
        engine: DOCKER,
        id: name.parse().unwrap(),
        name: format!("{name}_1_1_c1"),
        labels: labels.into(),
        image: "web:1".to_owned(),
        image_id: "sha256:ab".parse().unwrap(),
        state: ContainerState::Running,
        exit_code: None,
        health: None,
        created_at_ms: 0,
    }
}

fn image(id: &str, references: &[&str]) -> Image {
    Image {
        engine: DOCKER,
        id: id.parse::<EngineImageId>().unwrap(),
        references: references.iter().map(|it| reference(it)).collect(),
        size: 0,
    }
}

fn volume(name: &str, digest: &str) -> CurrentComponent {
    CurrentComponent {
        engine: DOCKER,
        name: name.to_owned(),
        app: None,
        digest: Some(digest.to_owned()),
    }
}

fn reference(text: &str) -> ImageRef {
    text.parse().unwrap()
}

fn id(text: &str) -> ContainerId {
    text.parse().unwrap()
}

/// Lists an engine with what a device has there.
fn list(view: &mut View, engine: EngineKind) {
    let (kinds, begun) = view.begin(engine).unwrap();
    view.listed(listing(engine, kinds, begun));
}

fn listing(engine: EngineKind, kinds: BTreeSet<ObjectKind>, begun: u64) -> Listing {
    let objects = if engine == DOCKER {
        EngineObjects {
            containers: vec![container("web")],
            images: vec![image("sha256:ab", &["web:1", "web:latest"])],
            volumes: vec![volume("data", "d1")],
            networks: Vec::new(),
        }
    } else {
        EngineObjects::default()
    };
    Listing {
        engine,
        begun,
        kinds,
        objects,
        failure: None,
    }
}

fn silence(view: &mut View) {
    let (kinds, begun) = view.begin(DOCKER).unwrap();
    view.listed(Listing {
        failure: Some("it is gone".to_owned()),
        objects: EngineObjects::default(),
        ..listing(DOCKER, kinds, begun)
    });
}

/// Returns the view of a device with this engine after its first listing.
fn known() -> View {
    let mut view = View::new([DOCKER].into_iter(), Branding::default());
    list(&mut view, DOCKER);
    view
}

/// Returns the objects in the view, one word each.
fn picture(view: &View) -> String {
    let objects = &view.engines[&DOCKER].objects;
    let containers = objects.containers.iter();
    let containers = containers.map(|it| format!("{}={:?}", it.name, it.state));
    let images = objects.images.iter().map(|image| {
        let references = image.references.iter().map(ToString::to_string);
        format!("{}={}", image.id, references.collect::<Vec<_>>().join(","))
    });
    let components = objects.volumes.iter().chain(&objects.networks);
    let components = components.map(|it| format!("{}={}", it.name, it.digest.as_deref().unwrap()));
    let words: Vec<String> = containers.chain(images).chain(components).collect();
    words.join(" ")
}

#[test]
fn an_effect_is_in_the_view_at_once_and_verified_by_one_listing() {
    const BEFORE: &str = "web_1_1_c1=Running sha256:ab=web:1,web:latest data=d1";
    let (volumes, networks) = (ComponentKind::Volume, ComponentKind::Network);
    for (effect, expected) in [
        (
            Effect::ContainerMade(container("job")),
            "web_1_1_c1=Running job_1_1_c1=Running sha256:ab=web:1,web:latest data=d1",
        ),
        (Effect::ContainerMade(container("web")), BEFORE),
        (
            Effect::ContainerIs(DOCKER, id("web"), ContainerState::Exited),
            "web_1_1_c1=Exited sha256:ab=web:1,web:latest data=d1",
        ),
        (
            Effect::ContainerNamed(DOCKER, id("web"), "web_1_2_c2".to_owned()),
            "web_1_2_c2=Running sha256:ab=web:1,web:latest data=d1",
        ),
        (
            Effect::ContainerRemoved(DOCKER, id("web")),
            "sha256:ab=web:1,web:latest data=d1",
        ),
        (
            Effect::Pulled(image("sha256:cd", &["web:latest"])),
            "web_1_1_c1=Running sha256:ab=web:1 sha256:cd=web:latest data=d1",
        ),
        (
            Effect::Pulled(image("sha256:ab", &["web:3"])),
            "web_1_1_c1=Running sha256:ab=web:3 data=d1",
        ),
        (
            Effect::ImageRemoved(DOCKER, reference("web:1")),
            "web_1_1_c1=Running sha256:ab=web:latest data=d1",
        ),
        (
            Effect::ComponentMade(volumes, volume("data", "d2")),
            "web_1_1_c1=Running sha256:ab=web:1,web:latest data=d2",
        ),
        (
            Effect::ComponentMade(networks, volume("data", "n1")),
            "web_1_1_c1=Running sha256:ab=web:1,web:latest data=d1 data=n1",
        ),
        (
            Effect::ComponentRemoved(volumes, DOCKER, "data".to_owned()),
            "web_1_1_c1=Running sha256:ab=web:1,web:latest",
        ),
    ] {
        let mut view = known();
        let what = format!("{effect:?}");
        let (_, kind) = effect.about();
        view.apply(effect);
        assert_eq!(picture(&view), expected, "{what}");
        assert!(view.begin(DOCKER).is_none(), "{what}");
        assert!(view.verify());
        let (kinds, begun) = view.begin(DOCKER).unwrap();
        assert_eq!(kinds, [kind].into(), "{what}");
        view.listed(listing(DOCKER, kinds, begun));
        assert_eq!(picture(&view), BEFORE, "{what}");
        assert!(!view.verify());
    }
}

#[test]
fn a_listing_that_began_before_an_effect_does_not_hide_it() {
    let mut view = known();
    view.mark(DOCKER, [ObjectKind::Containers, ObjectKind::Images]);
    let (kinds, begun) = view.begin(DOCKER).unwrap();
    view.apply(Effect::ContainerRemoved(DOCKER, id("web")));
    view.listed(listing(DOCKER, kinds, begun));
    assert!(view.container(&id("web")).is_none());
    let (kinds, begun) = view.begin(DOCKER).unwrap();
    assert_eq!(kinds, [ObjectKind::Containers].into());
    view.listed(listing(DOCKER, kinds, begun));
    assert!(view.container(&id("web")).is_some());
}

#[test]
fn what_a_failed_step_was_about_is_busy_until_all_of_it_was_listed_again() {
    type Then = fn(&mut View, (BTreeSet<ObjectKind>, u64));
    for (what, then, is_busy) in [
        ("nothing", (|_, _| ()) as Then, true),
        (
            "a listing from before",
            |view, (kinds, begun)| view.listed(listing(DOCKER, kinds, begun)),
            true,
        ),
        (
            "a listing of a part",
            |view, _| {
                let (_, begun) = view.begin(DOCKER).unwrap();
                view.listed(listing(DOCKER, [ObjectKind::Images].into(), begun));
            },
            true,
        ),
        ("a listing of all", |view, _| list(view, DOCKER), false),
        ("a silent engine", |view, _| silence(view), false),
    ] {
        let mut view = known();
        view.mark(DOCKER, KINDS);
        let before = view.begin(DOCKER).unwrap();
        view.invalidate(Subject::Reboot);
        then(&mut view, before);
        assert_eq!(view.unknown().count() == 1, is_busy, "{what}");
    }
}

/// The other supervisor may have removed it since: the services of this one would fail to start for ever.
#[test]
fn a_shared_network_of_the_api_is_there_until_a_step_fails() {
    let networks = |view: &View| {
        let current = view.current();
        let names = current.networks.into_iter().map(|network| network.name);
        names.collect::<Vec<_>>()
    };
    let mut view = known();
    view.apply(Effect::ApiNetworkIsShared(DOCKER));
    view.mark(DOCKER, KINDS);
    list(&mut view, DOCKER);
    assert_eq!(networks(&view), ["supervisor0"]);
    view.invalidate(Subject::Reboot);
    assert!(networks(&view).is_empty());
}

#[test]
fn nothing_counts_as_known_until_what_is_invalid_was_listed_again() {
    let mut view = known();
    view.mark(DOCKER, KINDS);
    let (kinds, begun) = view.begin(DOCKER).unwrap();
    view.invalidate_all();
    view.listed(listing(DOCKER, kinds, begun));
    assert!(!view.is_known() && view.apps().is_none());
    list(&mut view, DOCKER);
    assert_eq!(view.apps(), Some([model::AppId(1)].into()));
}

#[test]
fn no_decision_depends_on_what_was_last_seen_on_a_silent_engine() {
    let mut view = View::new([DOCKER, WASM].into_iter(), Branding::default());
    list(&mut view, DOCKER);
    assert!(!view.is_known() && view.all_answer());
    list(&mut view, WASM);
    assert!(view.is_known() && view.silent_engines().is_empty());
    let definitions = [("service fleet/web", "d1"), ("volume data", "d1")];
    let found = view.definitions().unwrap();
    let found = found
        .iter()
        .map(|(subject, digest)| (&**subject, &**digest));
    assert_eq!(found.collect::<Vec<_>>(), definitions);
    assert_eq!(view.current().services.len(), 1);

    view.mark(DOCKER, [ObjectKind::Images]);
    silence(&mut view);
    assert!(view.is_known() && !view.all_answer());
    assert!(view.silent_engines().keys().eq([&DOCKER]));
    assert_eq!(
        (view.services().count(), view.current().services.len()),
        (1, 0)
    );
    assert_eq!(view.definitions(), None);
    assert_eq!(view.app_of(&id("web")), Some(model::AppId(1)));
    list(&mut view, DOCKER);
    assert!(view.all_answer());
    assert_eq!(view.current().services.len(), 1);
}

#[test]
fn an_app_has_its_images_if_each_is_there_by_some_reference() {
    let view = known();
    for (images, expected) in [
        (&["web:1"][..], true),
        (&["docker.io/library/web:1", "web:latest"], true),
        (&["web:1", "web:2"], false),
    ] {
        let services = images.iter().enumerate();
        let services =
            services.map(|(n, image)| json!({ "serviceName": format!("s{n}"), "image": image }));
        let app = shop("c1", services.collect());
        assert_eq!(view.has_images_of(&app), expected, "{images:?}");
        assert_eq!(view.services_of(&app.uuid).len(), 1);
    }
    assert!(view.services_of(&"other".parse().unwrap()).is_empty());
}
