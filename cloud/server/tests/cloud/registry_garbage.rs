//! The data of deleted images is deleted from the registry, and nothing else is.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use data::testing::{on_fresh, sql};
use held_port::HeldPort;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::docker_registry::{DockerRegistry, is_there};
use crate::harness::{ApiCaller, Cloud, read};
use crate::reach::until;
use crate::registry::{at_registry, digest, token};
use crate::shop::{Shop, execute};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A cloud and its registry.
struct Scene {
    cloud: Cloud,
    host: String,
    database: String,
    settings: String,
}

impl Scene {
    async fn open(database: &str, deletes: bool) -> (Self, DockerRegistry) {
        let port = HeldPort::new().expect("a port");
        let host = port.address().to_string();
        let settings =
            format!("registry = '{host}'\nregistry_url = 'http://{host}/'\nregistration = 'open'");
        let cloud = Cloud::start_with(database, &settings).await;
        let certificate = Command::new(env!("CARGO_BIN_EXE_fleet-cloud"))
            .args(["registry-certificate", "--database", database])
            .output()
            .expect("the program");
        let certificate = String::from_utf8(certificate.stdout).expect("PEM");
        let realm = format!("{}/auth/v1/token", cloud.url);
        let mut registry = DockerRegistry::prepared(port, &certificate, &realm, deletes);
        registry.begin().await;
        let scene = Scene {
            cloud,
            host,
            database: database.to_owned(),
            settings,
        };
        (scene, registry)
    }

    /// Puts a manifest into a repository, under its digest or a tag; returns its digest.
    async fn put(&self, by: &str, repository: &str, tag: Option<&str>, body: &Value) -> String {
        let scope = format!("repository:{repository}:pull,push");
        let bytes = body.to_string().into_bytes();
        let hash = digest(&bytes);
        let path = format!("/v2/{repository}/manifests/{}", tag.unwrap_or(&hash));
        let (status, given) = read(token(&self.cloud, &self.host, by, &scope).await).await;
        assert_eq!(status, StatusCode::OK, "{given}");
        let answer = crate::harness::client()
            .put(format!("http://{}{path}", self.host))
            .bearer_auth(given["token"].as_str().expect("a token"))
            .header("content-type", body["mediaType"].as_str().expect("a type"))
            .body(bytes)
            .send()
            .await
            .expect("an answer");
        assert_eq!(
            answer.status(),
            StatusCode::CREATED,
            "{:?}",
            answer.text().await
        );
        hash
    }

    /// Uploads a blob and a manifest for it; returns the digests of both.
    async fn push(
        &self,
        by: &str,
        repository: &str,
        tag: Option<&str>,
        content: &str,
    ) -> (String, String) {
        let scope = format!("repository:{repository}:pull,push");
        let blob = json!({ "content": content }).to_string().into_bytes();
        let of_blob = digest(&blob);
        let begin = format!("/v2/{repository}/blobs/uploads/");
        let ask = async |method, path: &str, body: Vec<u8>| {
            at_registry(&self.cloud, &self.host, by, &scope, method, path, body).await
        };
        let begun = ask(Method::POST, &begin, Vec::new()).await;
        assert_eq!(begun.status(), StatusCode::ACCEPTED);
        let place = begun.headers()["location"].to_str().expect("an address");
        let put = format!("{place}&digest={of_blob}");
        let entry = json!({
            "mediaType": "application/vnd.oci.image.config.v1+json", "digest": of_blob, "size": blob.len(),
        });
        assert_eq!(
            ask(Method::PUT, &put, blob).await.status(),
            StatusCode::CREATED
        );
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": entry, "layers": [],
        });
        (self.put(by, repository, tag, &manifest).await, of_blob)
    }

    /// Makes the deletion of every waiting image due at once, with its tokens expired.
    async fn time_passes(&self) {
        let past = sql("UPDATE image_garbage SET gone_at = now_ms() - ?, due_at = 0");
        execute(&self.database, past.with(7_200_000_i64)).await;
    }

    /// Waits until the cloud has deleted something that is not due yet. Its check may be in progress, and postpones the
    /// next one by the time at which it began, so time passes more than once.
    async fn until_deleted(&self, what: &str, is_there: impl Fn() -> bool) {
        until(what, async || {
            self.time_passes().await;
            (!is_there()).then_some(())
        })
        .await;
    }

    /// Waits until nothing is left to delete; a check in progress does not know the new time yet.
    async fn nothing_waits(&self) {
        let begun = Instant::now();
        loop {
            let left = sql("UPDATE image_garbage SET location = location");
            if execute(&self.database, left).await == 0 {
                return;
            }
            assert!(begun.elapsed().as_secs() < 60, "something waits");
            self.time_passes().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// An image of a service, in a separate release.
struct ImageBuild {
    release: i64,
    image: i64,
    repository: String,
}

async fn built(
    by: &ApiCaller<'_>,
    host: &str,
    fleet: i64,
    service: i64,
    commit: &str,
) -> ImageBuild {
    let now = "2026-11-21T10:00:00Z";
    let image = json!({
        "is_a_build_of__service": service, "status": "running", "start_timestamp": now,
    });
    let image = by.create("image", image).await;
    let row = by
        .rows(&format!(
            "/v7/image({image})?$select=is_stored_at__image_location"
        ))
        .await;
    let location = row[0]["is_stored_at__image_location"]
        .as_str()
        .expect("a place");
    let repository = location
        .strip_prefix(&format!("{host}/"))
        .expect("here")
        .to_owned();
    let release = json!({
        "belongs_to__application": fleet, "commit": commit, "status": "running",
        "composition": {}, "source": "cloud", "start_timestamp": now,
    });
    let release = by.create("release", release).await;
    let part = json!({ "image": image, "is_part_of__release": release });
    by.create("release_image", part).await;
    ImageBuild {
        release,
        image,
        repository,
    }
}

async fn is_pushed(by: &ApiCaller<'_>, built: &ImageBuild, hash: &str) {
    let pushed = json!({
        "status": "success", "push_timestamp": "2026-11-21T10:00:01Z", "content_hash": hash,
    });
    let path = format!("/v7/image({})", built.image);
    let (status, answer) = by.send(Method::PATCH, &path, pushed).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

async fn delete(by: &ApiCaller<'_>, path: &str) {
    let (status, answer) = by.answer(by.ask(Method::DELETE, path)).await;
    assert_eq!(status, StatusCode::OK, "{path}: {answer}");
}

#[tokio::test]
async fn garbage_what_was_pushed_for_a_release_goes_from_the_registry_with_it() {
    if !is_there() {
        return;
    }
    on_fresh(async |database| {
        let (scene, mut registry) = Scene::open(&database, true).await;
        let shop = Shop::open(&scene.cloud).await;
        let (ann, host) = (&shop.ann, scene.host.clone());
        let [main, side] = shop.services;
        let old = built(ann, &host, shop.fleet, main, "old").await;
        let kept = built(ann, &host, shop.fleet, side, "kept").await;
        let other_fleet = ann.fleet("other", "raspberrypi4-64").await;
        let service = json!({ "service_name": "main", "application": other_fleet });
        let service = ann.create("service", service).await;
        let other = built(ann, &host, other_fleet, service, "other").await;
        // An image that the release shares with another one remains.
        let part = json!({ "image": kept.image, "is_part_of__release": old.release });
        ann.create("release_image", part).await;

        let by = &ann.token;
        let mut of_old = BTreeSet::new();
        let (first, first_blob) = scene.push(by, &old.repository, None, "arm").await;
        let (second, _) = scene.push(by, &old.repository, None, "amd").await;
        let entry = |digest: &str| json!({ "mediaType": MANIFEST, "digest": digest, "size": 300 });
        let index = json!({
            "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(&first), entry(&second)],
        });
        let index = scene.put(by, &old.repository, Some("latest"), &index).await;
        let (before, _) = scene.push(by, &old.repository, Some("before"), "before").await;
        // More tags than are listed at once; all but the last one refer to one manifest.
        let (last, _) = scene.push(by, &old.repository, Some("z"), "last").await;
        of_old.insert(last);
        for number in 0..120 {
            let manifest = json!({
                "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(&first)],
            });
            let tag = format!("t{number}");
            of_old.insert(scene.put(by, &old.repository, Some(&tag), &manifest).await);
        }
        of_old.extend([first, second, index.clone(), before]);
        is_pushed(ann, &old, &index).await;
        let (kept_hash, _) = scene.push(by, &kept.repository, None, "kept").await;
        is_pushed(ann, &kept, &kept_hash).await;
        let (other_hash, other_blob) = scene.push(by, &other.repository, Some("x"), "other").await;
        is_pushed(ann, &other, &other_hash).await;

        let there = |hash: &String| registry.has(&old.repository, hash);
        assert!(of_old.iter().all(there));
        delete(ann, &format!("/v7/release({})", old.release)).await;
        let (_, rows) = ann.get(&format!("/v7/image({})?$select=id", old.image)).await;
        assert_eq!(rows, json!({ "d": [] }));
        until("the manifests are gone", async || {
            (!of_old.iter().any(there)).then_some(())
        })
        .await;

        // Deleting the fleet deletes its images: while the registry is down, and the cloud is restarted.
        registry.kill();
        delete(ann, &format!("/v7/application({other_fleet})")).await;
        let lone = json!({
            "is_a_build_of__service": side, "status": "running", "start_timestamp": "2026-11-21T10:00:00Z",
        });
        let lone = ann.create("image", lone).await;
        delete(ann, &format!("/v7/image({lone})")).await;
        let (url, token) = (scene.cloud.url.clone(), ann.token.clone());
        until("the cloud says why it waits", async || {
            scene.cloud.log().contains("cannot be reached").then_some(())
        })
        .await;
        let Scene { cloud, database, settings, host } = scene;
        cloud.kill();
        drop(cloud);
        registry.begin().await;
        assert!(registry.has(&other.repository, &other_hash));
        let cloud = Cloud::again(&url, &database, &settings).await;
        let scene = Scene { cloud, database, settings, host };
        let of_other = || registry.has(&other.repository, &other_hash);
        scene.until_deleted("the other fleet's is gone as well", of_other).await;
        assert!(registry.has(&kept.repository, &kept_hash));

        // The registry's operator frees data that no manifest names any more.
        registry.kill();
        assert!(registry.has_blob(&first_blob) && registry.has_blob(&other_blob));
        registry.collect();
        assert!(!registry.has_blob(&first_blob) && !registry.has_blob(&other_blob));
        assert!(registry.has_blob(&kept_hash));
        registry.begin().await;
        let scope = format!("repository:{}:pull", kept.repository);
        let path = format!("/v2/{}/manifests/{kept_hash}", kept.repository);
        let pulled = at_registry(&scene.cloud, &scene.host, &token, &scope, Method::GET, &path, Vec::new());
        assert_eq!(pulled.await.status(), StatusCode::OK);
    })
    .await;
}

#[tokio::test]
async fn garbage_what_is_pushed_by_a_token_of_before_goes_when_the_token_is_over() {
    if !is_there() {
        return;
    }
    on_fresh(async |database| {
        let (scene, registry) = Scene::open(&database, true).await;
        let shop = Shop::open(&scene.cloud).await;
        let old = built(&shop.ann, &scene.host, shop.fleet, shop.services[0], "old").await;
        let (hash, _) = scene
            .push(&shop.ann.token, &old.repository, Some("a"), "a")
            .await;
        let scope = format!("repository:{}:pull,push", old.repository);
        let (_, given) =
            read(token(&scene.cloud, &scene.host, &shop.ann.token, &scope).await).await;
        delete(&shop.ann, &format!("/v7/image({})", old.image)).await;
        until("it is gone", async || {
            (!registry.has(&old.repository, &hash)).then_some(())
        })
        .await;
        let manifest = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [] });
        let bytes = manifest.to_string().into_bytes();
        let late = digest(&bytes);
        let put = format!("http://{}/v2/{}/manifests/late", scene.host, old.repository);
        let put = crate::harness::client().put(put).body(bytes);
        let put = put.bearer_auth(given["token"].as_str().expect("a token"));
        let put = put
            .header("content-type", INDEX)
            .send()
            .await
            .expect("an answer");
        assert_eq!(put.status(), StatusCode::CREATED);
        assert!(registry.has(&old.repository, &late));
        let of_late = || registry.has(&old.repository, &late);
        scene.until_deleted("what came late is gone", of_late).await;
        scene.nothing_waits().await;
    })
    .await;
}

#[tokio::test]
async fn garbage_a_tenant_has_nobody_elses_images_deleted() {
    if !is_there() {
        return;
    }
    on_fresh(async |database| {
        let (scene, registry) = Scene::open(&database, true).await;
        let (cloud, host) = (&scene.cloud, scene.host.as_str());
        let shop = Shop::open(cloud).await;
        let ann = &shop.ann;
        let public = json!({ "is_public": true });
        let (status, _) = ann.send(Method::PATCH, &format!("/v7/application({})", shop.fleet), public).await;
        assert_eq!(status, StatusCode::OK);
        // One in a release, and one in none: an image that is being built.
        let victim = built(ann, host, shop.fleet, shop.services[0], "victim").await;
        let (hash, _) = scene.push(&ann.token, &victim.repository, Some("latest"), "victim").await;
        is_pushed(ann, &victim, &hash).await;
        let lone = built(ann, host, shop.fleet, shop.services[1], "lone").await;
        let (lone_hash, _) = scene.push(&ann.token, &lone.repository, Some("latest"), "lone").await;
        is_pushed(ann, &lone, &lone_hash).await;
        delete(ann, &format!("/v7/release_image?$filter=image eq {}", lone.image)).await;

        let mallory = cloud.register("mallory").await;
        let lair = mallory.fleet("lair", "raspberrypi4-64").await;
        let service = json!({ "service_name": "main", "application": lair });
        let service = mallory.create("service", service).await;
        let own = built(&mallory, host, lair, service, "own").await;
        let (own_hash, _) = scene.push(&mallory.token, &own.repository, Some("latest"), "own").await;

        // Nobody gets a token to delete: neither for another's repository, nor for one's own.
        for (who, repository) in [
            (&mallory, &victim.repository),
            (&mallory, &own.repository),
            (ann, &victim.repository),
        ] {
            for actions in ["delete", "*", "pull,push,delete", "pull,delete"] {
                let scope = format!("repository:{repository}:{actions}");
                let (status, given) = read(token(cloud, host, &who.token, &scope).await).await;
                assert_eq!(status, StatusCode::OK, "{given}");
                let path = format!("http://{host}/v2/{repository}/manifests/{hash}");
                let request = crate::harness::client().delete(path);
                let request = request.bearer_auth(given["token"].as_str().expect("a token"));
                let answer = request.send().await.expect("an answer");
                assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{scope}");
            }
        }

        // The sender cannot choose an image's location, in any version.
        let place = format!("{host}/{}", victim.repository);
        let mut mine = vec![own.image];
        for version in ["v7", "v6", "v5", "v4", "v3", "v2", "v1"] {
            let image = json!({
                "is_a_build_of__service": service, "status": "running", "start_timestamp": "2026-11-21T10:00:00Z",
                "is_stored_at__image_location": place, "content_hash": hash,
            });
            let (status, row) = mallory.send(Method::POST, &format!("/{version}/image"), image).await;
            if status == StatusCode::CREATED {
                mine.push(row["id"].as_i64().expect("an id"));
            }
            let moved = json!({ "is_stored_at__image_location": place });
            for image in &mine {
                let path = format!("/{version}/image({image})");
                let _ = mallory.send(Method::PATCH, &path, moved.clone()).await;
            }
        }
        let rows = mallory.rows(&format!("/v7/image?$filter=is_stored_at__image_location eq '{place}'")).await;
        assert_eq!(rows.len(), 1, "{rows:?}");

        // Visible images of others become part of one's own release, which is then deleted.
        for image in [victim.image, lone.image] {
            let part = json!({ "image": image, "is_part_of__release": own.release });
            let _ = mallory.send(Method::POST, "/v7/release_image", part).await;
        }
        // An index that names manifests of others is one's own anyway.
        let entry = json!({ "mediaType": MANIFEST, "digest": hash, "size": 300 });
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] });
        let scope = format!("repository:{}:pull,push", own.repository);
        let path = format!("/v2/{}/manifests/index", own.repository);
        let bytes = index.to_string().into_bytes();
        let _ = at_registry(cloud, host, &mallory.token, &scope, Method::PUT, &path, bytes).await;
        delete(&mallory, &format!("/v7/release({})", own.release)).await;
        delete(&mallory, &format!("/v7/application({lair})")).await;
        // A waiting location names somebody's image, or no image at all: nothing of that is deleted either.
        for location in [
            place.clone(),
            format!("{host}/v2/../{}", lone.repository),
            format!("elsewhere.example/{}", lone.repository),
            format!("{host}{}", lone.repository),
        ] {
            let waits = sql(
                "INSERT INTO image_garbage (location, content_hash, gone_at, due_at, failures) VALUES (?, ?, 0, 0, 0)",
            );
            execute(&database, waits.with(location).with(lone_hash.as_str())).await;
        }
        scene.time_passes().await;
        scene.nothing_waits().await;
        assert!(!registry.has(&own.repository, &own_hash), "her own is gone");
        assert!(registry.has(&victim.repository, &hash));
        assert!(registry.has(&lone.repository, &lone_hash));
        for image in [victim.image, lone.image] {
            assert_eq!(ann.rows(&format!("/v7/image({image})?$select=id")).await.len(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn garbage_a_registry_that_deletes_nothing_is_logged_and_lags_in_health() {
    if !is_there() {
        return;
    }
    on_fresh(async |database| {
        let (scene, registry) = Scene::open(&database, false).await;
        let shop = Shop::open(&scene.cloud).await;
        let old = built(&shop.ann, &scene.host, shop.fleet, shop.services[0], "old").await;
        let (hash, _) = scene
            .push(&shop.ann.token, &old.repository, Some("a"), "a")
            .await;
        let health = async || {
            let answer = scene.cloud.ask(Method::GET, "/health").send().await;
            read(answer.expect("an answer")).await
        };
        let (status, found) = health().await;
        assert_eq!(
            (status, &found["checks"]["registry"]),
            (StatusCode::OK, &json!([{ "status": "pass" }]))
        );
        delete(&shop.ann, &format!("/v7/image({})", old.image)).await;
        until("the log says what to do", async || {
            scene
                .cloud
                .log()
                .contains("REGISTRY_STORAGE_DELETE_ENABLED=true")
                .then_some(())
        })
        .await;
        assert!(registry.has(&old.repository, &hash));
        scene.time_passes().await;
        until("its health says so", async || {
            let (status, found) = health().await;
            assert_eq!(status, StatusCode::OK, "it works nevertheless");
            (found["status"] == "warn"
                && found["checks"]["registry"] == json!([{ "status": "warn" }]))
            .then_some(())
        })
        .await;
        until("the log says how many wait", async || {
            scene
                .cloud
                .log()
                .contains("wait to be removed from the registry")
                .then_some(())
        })
        .await;
    })
    .await;
}
