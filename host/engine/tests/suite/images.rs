//! Pulls from a registry, and the removal of images.

use std::sync::Mutex;

use engine::{EngineError, RegistryAuth};
use model::ImageRef;

use super::registry_proxy::{Manner, RegistryProxy};
use super::{Fixture, PATIENCE, Program};

fn reference(registry: &str, published: &str) -> ImageRef {
    format!("{registry}/{published}").parse().unwrap()
}

async fn is_listed(fixture: &dyn Fixture, image: &ImageRef) -> bool {
    let all = fixture.engine().images().await.unwrap();
    all.iter().any(|found| found.references.contains(image))
}

pub async fn pull_reports_progress_that_never_falls(fixture: &dyn Fixture) {
    let image = reference(&fixture.registry(), &fixture.publish().await);
    let seen = Mutex::new(Vec::new());
    let progress = |progress: engine::PullProgress| seen.lock().unwrap().push(progress.percent);
    let pulled = fixture
        .engine()
        .pull_image(&image, None, &progress)
        .await
        .unwrap();

    assert_eq!(pulled.engine, fixture.engine().kind());
    assert!(pulled.references.contains(&image), "{pulled:?}");
    assert!(pulled.size > 0);
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.last(), Some(&100));
    let listed = fixture.engine().images().await.unwrap();
    assert!(
        listed
            .iter()
            .any(|found| found.id == pulled.id && found.references.contains(&image))
    );
}

pub async fn pulling_an_existing_image_sends_no_request(fixture: &dyn Fixture) {
    let proxy = RegistryProxy::start(&fixture.registry(), Manner::Plain).await;
    let image = reference(proxy.address(), &fixture.publish().await);
    let pulled = fixture
        .engine()
        .pull_image(&image, None, &|_| {})
        .await
        .unwrap();
    drop(proxy);
    let again = fixture
        .engine()
        .pull_image(&image, None, &|_| {})
        .await
        .unwrap();
    assert_eq!(again.id, pulled.id);
}

pub async fn pull_of_what_the_registry_lacks_is_not_found(fixture: &dyn Fixture) {
    let registry = fixture.registry();
    let published = fixture.publish().await;
    let (repository, _) = published.split_once(':').unwrap();
    let missing_digest = format!("sha256:{}", "0".repeat(64));
    for missing in [
        format!("{repository}:missing"),
        "suite/missing:latest".to_owned(),
        format!("{repository}@{missing_digest}"),
    ] {
        let image = reference(&registry, &missing);
        let pulled = fixture.engine().pull_image(&image, None, &|_| {}).await;
        assert!(
            matches!(pulled, Err(EngineError::NotFound { .. })),
            "{missing}: {pulled:?}"
        );
        assert!(!is_listed(fixture, &image).await);
    }
}

pub async fn pull_with_credentials_proves_who_we_are(fixture: &dyn Fixture) {
    let auth = |password: &str| RegistryAuth {
        user: "d_1".into(),
        password: password.into(),
        cloud: None,
    };
    // Characters whose base64 form contains those that its URL alphabet does not have.
    let right = auth("~~~???>>>ü");
    let proxy = RegistryProxy::start(&fixture.registry(), Manner::Asks(right.clone())).await;
    let image = reference(proxy.address(), &fixture.publish().await);
    for refused in [None, Some(&auth("wrong"))] {
        let pulled = fixture.engine().pull_image(&image, refused, &|_| {}).await;
        assert!(pulled.is_err(), "{pulled:?}");
        assert!(!is_listed(fixture, &image).await);
    }
    fixture
        .engine()
        .pull_image(&image, Some(&right), &|_| {})
        .await
        .unwrap();
    assert!(is_listed(fixture, &image).await);
}

pub async fn dropping_a_pull_stops_the_transfer(fixture: &dyn Fixture) {
    let proxy = RegistryProxy::start(&fixture.registry(), Manner::TricklesInBlobs).await;
    let image = reference(proxy.address(), &fixture.publish().await);
    let engine = fixture.engine();
    {
        let pull = engine.pull_image(&image, None, &|_| {});
        tokio::select! {
            pulled = pull => panic!("the registry has stalled, and yet: {pulled:?}"),
            () = proxy.stalled() => {}
        }
    }
    tokio::time::timeout(PATIENCE, proxy.abandoned())
        .await
        .expect("the engine gives the transfer up");
    assert!(!is_listed(fixture, &image).await);
}

pub async fn removed_image_is_gone_and_removing_it_again_is_no_error(fixture: &dyn Fixture) {
    let image = reference(&fixture.registry(), &fixture.publish().await);
    fixture
        .engine()
        .pull_image(&image, None, &|_| {})
        .await
        .unwrap();
    for _ in 0..2 {
        fixture.engine().remove_image(&image).await.unwrap();
        assert!(!is_listed(fixture, &image).await);
    }
}

pub async fn image_in_use_is_not_removed(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let image = reference(&fixture.registry(), &fixture.publish().await);
    let mut service = fixture.service("web", &Program::Tick);
    service.config.image = image.clone();
    let id = fixture.start(&service).await;
    let removed = engine.remove_image(&image).await;
    assert!(
        matches!(removed, Err(EngineError::InUse { .. })),
        "{removed:?}"
    );
    assert!(is_listed(fixture, &image).await);
    engine.remove_container(&id).await.unwrap();
    engine.remove_image(&image).await.unwrap();
}
