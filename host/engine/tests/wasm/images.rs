//! Components from files and from faulty registries.

use engine::{EngineError, RESERVE};
use model::{ContainerState, ImageRef};

use crate::fixture::{WasmFixture, test};
use crate::suite::{Fixture, PATIENCE, Program, eventually};

fn file(fixture: &WasmFixture, name: &str, bytes: &[u8]) -> ImageRef {
    let path = fixture.folder().join(name);
    std::fs::write(&path, bytes).unwrap();
    format!("file:{}", path.display()).parse().unwrap()
}

/// The tests' program as another component: with an empty custom section at its end.
fn changed(fixture: &WasmFixture) -> Vec<u8> {
    let mut bytes = std::fs::read(fixture.guest()).unwrap();
    bytes.extend_from_slice(&[0, 2, 1, b'x']);
    bytes
}

#[test]
fn changed_file_is_a_changed_image_and_what_runs_keeps_its_own() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let engine = fixture.engine();
        let image = file(
            &fixture,
            "app.wasm",
            &std::fs::read(fixture.guest()).unwrap(),
        );
        let mut service = words.service("tick", &Program::Tick);
        service.config.image = image.clone();
        let id = fixture.start(&service).await;
        let before = words.find(&id).await.unwrap().image_id;

        file(&fixture, "app.wasm", &changed(&fixture));
        let listed = engine.images().await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].references, std::slice::from_ref(&image));
        assert_ne!(listed[0].id, before);

        // Containers of the old component start with the old one.
        engine
            .stop_container(&id, std::time::Duration::ZERO)
            .await
            .unwrap();
        engine.start_container(&id).await.unwrap();
        assert_eq!(words.find(&id).await.unwrap().image_id, before);

        // New containers have the new one, pulled again or not.
        service.name = words.name("new");
        let spec = engine::ContainerSpec {
            name: &service.name,
            config: &service.config,
            init_environment: &service.init_environment,
            image_id: &listed[0].id,
            network_container: None,
        };
        let new = engine.create_container(&spec).await.unwrap().id;
        engine.start_container(&new).await.unwrap();
        assert_eq!(words.find(&new).await.unwrap().image_id, listed[0].id);

        // The old component is kept for as long as a container uses it.
        let components = || {
            std::fs::read_dir(fixture.state().join("components"))
                .unwrap()
                .count()
        };
        assert_eq!(components(), 2);
        engine.remove_container(&id).await.unwrap();
        assert_eq!(components(), 1);
    });
}

#[test]
fn file_that_is_gone_is_no_image() {
    test(async |fixture| {
        let engine = fixture.engine();
        let image = file(&fixture, "app.wasm", &changed(&fixture));
        engine.pull_image(&image, None, &|_| {}).await.unwrap();
        std::fs::remove_file(fixture.folder().join("app.wasm")).unwrap();
        assert_eq!(engine.images().await.unwrap(), []);
        let pulled = engine.pull_image(&image, None, &|_| {}).await;
        assert!(
            matches!(pulled, Err(EngineError::NotFound { .. })),
            "{pulled:?}"
        );
    });
}

/// A pipe in the place of a file. Dropping it releases whatever still waits for the pipe.
struct Pipe(std::path::PathBuf);

impl Pipe {
    fn make(path: std::path::PathBuf) -> Self {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        Pipe(path)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let both = std::fs::File::options()
            .read(true)
            .write(true)
            .open(&self.0);
        drop(both);
    }
}

#[test]
fn a_pipe_as_a_file_is_refused_and_holds_nobody() {
    test(async |fixture| {
        let engine = fixture.engine();
        let path = fixture.folder().join("app.wasm");
        let image = file(&fixture, "app.wasm", &changed(&fixture));
        engine.pull_image(&image, None, &|_| {}).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        let _pipe = Pipe::make(path);

        let pulling = engine.pull_image(&image, None, &|_| {});
        let pulled = tokio::time::timeout(PATIENCE, pulling).await;
        let refused = pulled.expect("nobody waits for a pipe").unwrap_err();
        let source = std::error::Error::source(&refused).unwrap().to_string();
        assert!(source.contains("not a file"), "{source}");
        // The old reference no longer names an image.
        let listed = tokio::time::timeout(PATIENCE, engine.images()).await;
        assert_eq!(listed.expect("nobody waits for a pipe").unwrap(), []);
    });
}

#[test]
fn files_that_are_no_components_are_refused_with_the_reason() {
    test(async |fixture| {
        for (name, bytes, says) in [
            ("core.wasm", &b"\0asm\x01\0\0\0"[..], "wasm32-wasip2"),
            ("text.wasm", b"(component)", "not a WebAssembly"),
            ("empty.wasm", b"", "not a WebAssembly"),
        ] {
            let image = file(&fixture, name, bytes);
            let pulled = fixture.engine().pull_image(&image, None, &|_| {}).await;
            let Err(EngineError::WrongKind { reason, .. }) = pulled else {
                panic!("{name}: {pulled:?}");
            };
            assert!(reason.contains(says), "{reason}");
        }
        let damaged = file(&fixture, "damaged.wasm", b"\0asm\x0d\0\x01\0damaged");
        let pulled = fixture.engine().pull_image(&damaged, None, &|_| {}).await;
        assert!(
            matches!(pulled, Err(EngineError::Failed { .. })),
            "{pulled:?}"
        );
        assert_eq!(fixture.engine().images().await.unwrap(), []);
    });
}

#[test]
fn component_that_is_no_program_does_not_start_and_says_why() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let mut service = words.service("empty", &Program::Tick);
        service.config.image = file(&fixture, "empty.wasm", b"\0asm\x0d\0\x01\0");
        let id = words.create(&service).await;
        let started = fixture.engine().start_container(&id).await.unwrap_err();
        let source = std::error::Error::source(&started).unwrap().to_string();
        assert!(
            source.contains("not one that runs as a service"),
            "{source}"
        );
        let found = words.find(&id).await.unwrap();
        assert_eq!(found.state, ContainerState::Created);
    });
}

#[test]
fn registry_images_that_are_not_one_component_are_refused() {
    test(async |fixture| {
        let component = changed(&fixture);
        let registry = fixture.registry_of_components();
        let image = |published: String| -> ImageRef {
            format!("{}/{published}", registry.address())
                .parse()
                .unwrap()
        };
        let of_docker = registry.publish_as("docker", &component, |mut manifest| {
            manifest["config"]["mediaType"] = "application/vnd.oci.image.config.v1+json".into();
            manifest
        });
        let two_layers = registry.publish_as("two", &component, |mut manifest| {
            let layer = manifest["layers"][0].clone();
            manifest["layers"].as_array_mut().unwrap().push(layer);
            manifest
        });
        for published in [of_docker, two_layers] {
            let pulled = fixture
                .engine()
                .pull_image(&image(published), None, &|_| {})
                .await;
            assert!(
                matches!(pulled, Err(EngineError::WrongKind { .. })),
                "{pulled:?}"
            );
        }
        let wrong_size = registry.publish_as("size", &component, |mut manifest| {
            manifest["layers"][0]["size"] = 10.into();
            manifest
        });
        let too_large = registry.publish_as("large", &component, |mut manifest| {
            manifest["layers"][0]["size"] = (1_u64 << 40).into();
            manifest
        });
        for published in [wrong_size, too_large] {
            let pulled = fixture
                .engine()
                .pull_image(&image(published.clone()), None, &|_| {})
                .await;
            assert!(pulled.is_err(), "{published}");
        }
        let other = registry.publish_as("other", &component, |manifest| manifest);
        registry.damage("other");
        let pulled = fixture
            .engine()
            .pull_image(&image(other), None, &|_| {})
            .await;
        assert!(
            matches!(pulled, Err(EngineError::Failed { .. })),
            "{pulled:?}"
        );
        assert_eq!(fixture.engine().images().await.unwrap(), []);
    });
}

#[test]
fn tag_takes_its_digest_along_when_it_goes_and_a_digest_leaves_the_tag() {
    test(async |fixture| {
        let engine = fixture.engine();
        let published = fixture.publish().await;
        let tag: ImageRef = format!("{}/{published}", fixture.registry())
            .parse()
            .unwrap();
        let pulled = engine.pull_image(&tag, None, &|_| {}).await.unwrap();
        let is_digest = |image: &&ImageRef| image.as_str().contains("@sha256:");
        let digest = pulled.references.iter().find(is_digest).unwrap().clone();
        assert_eq!(pulled.references.len(), 2);

        engine.remove_image(&digest).await.unwrap();
        let left = engine.images().await.unwrap();
        assert_eq!(left[0].references, std::slice::from_ref(&tag));
        engine.remove_image(&tag).await.unwrap();
        assert_eq!(engine.images().await.unwrap(), []);

        // By its digest, it is the same image.
        let by_digest = engine.pull_image(&digest, None, &|_| {}).await.unwrap();
        assert_eq!(by_digest.id, pulled.id);
        engine.pull_image(&tag, None, &|_| {}).await.unwrap();
        engine.remove_image(&tag).await.unwrap();
        eventually("nothing is left", async || {
            let left = std::fs::read_dir(fixture.state().join("components")).unwrap();
            (left.count() == 0).then_some(())
        })
        .await;
    });
}

#[test]
fn pulls_at_the_same_time_do_not_take_each_others_components_away() {
    test(async |fixture| {
        let engine = fixture.engine();
        let mut images: Vec<ImageRef> = Vec::new();
        for _ in 0..12 {
            let published = fixture.publish().await;
            images.push(
                format!("{}/{published}", fixture.registry())
                    .parse()
                    .unwrap(),
            );
        }
        let pulls = images
            .iter()
            .map(|image| engine.pull_image(image, None, &|_| {}));
        for pulled in futures::future::join_all(pulls).await {
            pulled.unwrap();
        }
        assert_eq!(engine.images().await.unwrap().len(), images.len());
        let removals = images.iter().map(|image| engine.remove_image(image));
        for removed in futures::future::join_all(removals).await {
            removed.unwrap();
        }
        assert_eq!(engine.images().await.unwrap(), []);
    });
}

#[test]
fn component_that_does_not_fit_is_refused_before_it_is_downloaded() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let image = format!("{}/{}", words.registry(), words.publish().await);
        let image: ImageRef = image.parse().unwrap();
        let mut needs = 0;
        for _ in 0..2 {
            // First exactly the space that it reports to need, then one byte less.
            fixture
                .reopen_with_free((RESERVE + needs).saturating_sub(1))
                .await;
            match fixture.engine().pull_image(&image, None, &|_| {}).await {
                Err(EngineError::NoRoom {
                    download,
                    needed,
                    free,
                    folder,
                    ..
                }) => {
                    assert_eq!(download, needed);
                    assert_eq!(free, RESERVE + needs - 1);
                    assert!(folder.starts_with(fixture.state().canonicalize().unwrap()));
                    needs = needed;
                }
                other => panic!("there is no room, and yet: {other:?}"),
            }
        }
        fixture.reopen_with_free(RESERVE + needs).await;
        let pulled = fixture.engine().pull_image(&image, None, &|_| {}).await;
        assert_eq!(pulled.unwrap().size, needs);
    });
}
