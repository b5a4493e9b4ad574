//! Tokens, checked by Debian's docker-registry.

#[expect(
    dead_code,
    reason = "the tests over HTTP look at more of it than these"
)]
#[path = "../../tests/cloud/docker_registry.rs"]
mod docker_registry;

use cloud_core::clock::now;
use data::Keyring;
use docker_registry::{DockerRegistry, is_there};
use held_port::HeldPort;

use super::{Access, LIFE, Registry, made};

#[tokio::test]
async fn a_registry_takes_our_tokens_for_what_they_say_and_as_long_as_they_say() {
    if !is_there() {
        return;
    }
    let ours = Registry::with(made().expect("a key")).expect("a signer");
    let stranger = Registry::with(made().expect("a key")).expect("a signer");
    let port = HeldPort::new().expect("a port");
    let host = port.address().to_string();
    let realm = "http://127.0.0.1:1/auth/v1/token";
    let _registry = DockerRegistry::start(port, ours.certificate(), realm).await;
    let access = |name: &str, actions: &[&'static str]| {
        [Access {
            kind: "repository",
            name: name.to_owned(),
            actions: actions.to_vec(),
        }]
    };
    let life = LIFE.as_secs().cast_signed();
    let seconds = now() / 1000;
    let read = access("v2/a", &["pull"]);
    for (case, token, status) in [
        ("ours", ours.token("1", &host, &read, seconds), 404),
        (
            "of another key",
            stranger.token("1", &host, &read, seconds),
            401,
        ),
        (
            "for another registry",
            ours.token("1", "elsewhere", &read, seconds),
            401,
        ),
        // The registry tolerates clocks that differ by a minute.
        (
            "expired",
            ours.token("1", &host, &read, seconds - life - 70),
            401,
        ),
        (
            "not yet good",
            ours.token("1", &host, &read, seconds + 120),
            401,
        ),
        (
            "for another repository",
            ours.token("1", &host, &access("v2/b", &["pull"]), seconds),
            401,
        ),
        (
            "for another action",
            ours.token("1", &host, &access("v2/a", &["push"]), seconds),
            401,
        ),
        ("for nothing", ours.token("1", &host, &[], seconds), 401),
    ] {
        let token = token.expect("a token");
        let manifest = format!("http://{host}/v2/v2/a/manifests/none");
        // A build of the whole workspace enables TLS in reqwest, without a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let request = reqwest::Client::new().get(&manifest).bearer_auth(token);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), status, "{case}");
    }
}

#[tokio::test]
async fn every_replica_signs_with_the_key_of_the_database() {
    data::testing::on_both(async |database| {
        let first = Registry::load(&database, &Keyring::default())
            .await
            .expect("a signer");
        let second = Registry::load(&database, &Keyring::default())
            .await
            .expect("a signer");
        assert_eq!(first.certificate(), second.certificate());
        assert!(
            first
                .certificate()
                .starts_with("-----BEGIN CERTIFICATE-----")
        );
    })
    .await;
}

#[tokio::test]
async fn first_starts_of_several_replicas_agree_on_the_registrys_key() {
    data::testing::on_both_at(|url, _| async move {
        let options = data::Options::default().with_connections(2);
        let open = (0..8).map(|_| data::Database::open(&url, &options));
        let open = futures::future::try_join_all(open).await;
        let databases = open.expect("a database");
        let keyring = Keyring::default();
        // Opened first, so that all of them search for the key before it exists.
        let registries =
            futures::future::try_join_all(databases.iter().map(|it| Registry::load(it, &keyring)))
                .await;
        let registries = registries.expect("a key").into_iter();
        let mut certificates: Vec<_> = registries.map(|it| it.certificate).collect();
        certificates.dedup();
        assert_eq!(certificates.len(), 1);
    })
    .await;
}
