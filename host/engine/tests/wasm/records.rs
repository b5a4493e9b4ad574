//! Data in files: what services see of it, and what happens when it is damaged.

use std::fs;

use engine::{ContainerSpec, EngineError};
use model::{ContainerId, ContainerState, Mount, NetworkMode};
use wasm_service::record::{self, Members};

use crate::fixture::{WasmFixture, test};
use crate::suite::{Fixture, Program, Service, eventually};

#[test]
fn damaged_records_are_passed_over_and_the_rest_goes_on() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let network = words.network("front").await;
        let volume = words.volume("data").await;
        let good = fixture.start(&words.service("good", &Program::Tick)).await;
        let bad = words.create(&words.service("bad", &Program::Tick)).await;
        let stateless = words
            .create(&words.service("stateless", &Program::Tick))
            .await;
        let image = fs::read_dir(fixture.state().join("images"))
            .unwrap()
            .next()
            .unwrap();
        for path in [
            fixture.container(&bad).join("container.json"),
            fixture.container(&stateless).join("state.json"),
            fixture
                .state()
                .join("networks")
                .join(&network)
                .join("network.json"),
            fixture
                .state()
                .join("volumes")
                .join(&volume)
                .join("volume.json"),
            image.unwrap().path(),
        ] {
            fs::write(path, "{\"half\": ").unwrap();
        }
        let unfinished = fixture.state().join("containers/.new-unfinished");
        fs::create_dir(&unfinished).unwrap();
        fs::write(fixture.state().join("containers/stray-file"), "").unwrap();

        fixture.reopen().await;
        let engine = fixture.engine();
        assert!(!unfinished.exists());
        assert_eq!(
            words.find(&good).await.unwrap().state,
            ContainerState::Running
        );
        assert_eq!(words.find(&bad).await, None);
        assert_eq!(
            words.find(&stateless).await.unwrap().state,
            ContainerState::Created
        );
        assert_eq!(engine.networks().await.unwrap(), []);
        assert_eq!(engine.volumes().await.unwrap(), []);
        assert_eq!(engine.images().await.unwrap(), []);
        // Lost parts are created again; a volume's data is still there.
        let data = fixture
            .state()
            .join("volumes")
            .join(&volume)
            .join("data/kept");
        fs::write(&data, "").unwrap();
        words.network("front").await;
        words.volume("data").await;
        assert!(data.exists());
        words.pull().await;
        engine.start_container(&stateless).await.unwrap();
    });
}

#[test]
fn records_that_somebody_damages_or_removes_while_the_engine_runs_cost_their_own_containers_alone()
{
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let network = words.network("front").await;
        let member = |name: &str| {
            words
                .service(name, &Program::Tick)
                .in_networks(&[&network], name)
        };
        let good = words.create(&member("good")).await;
        let bad = words.create(&member("bad")).await;
        let removed = words.create(&member("removed")).await;
        let record = fixture.container(&bad).join("container.json");
        let whole = fs::read(&record).unwrap();
        fs::write(&record, "{\"half\": ").unwrap();
        fs::remove_dir_all(fixture.container(&removed)).unwrap();

        let engine = fixture.engine();
        assert!(words.find(&good).await.is_some());
        assert_eq!(words.find(&bad).await, None);
        assert_eq!(words.find(&removed).await, None);
        assert!(engine.start_container(&bad).await.is_err());
        assert!(engine.start_container(&removed).await.is_err());
        // The names are free again, and the network's table is without them.
        let again = words.create(&member("removed")).await;
        assert_eq!(members(&fixture, &network), sorted([&good, &again]));
        engine
            .rename_container(&good, &words.name("renamed"))
            .await
            .unwrap();
        engine.remove_container(&again).await.unwrap();
        assert_eq!(members(&fixture, &network), sorted([&good]));
        // Once the record is intact again, so is the container.
        fs::write(&record, whole).unwrap();
        assert!(words.find(&bad).await.is_some());
        engine.remove_container(&bad).await.unwrap();
        assert!(!fixture.container(&bad).exists());
        // The next change notices it as well: nothing has been listed since.
        fs::remove_dir_all(fixture.container(&good)).unwrap();
        let service = words.service("renamed", &Program::Tick);
        words.create(&service).await;
    });
}

#[test]
fn a_change_of_one_container_reads_no_record_of_another() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let network = words.network("front").await;
        let member = |name: &str| {
            words
                .service(name, &Program::Tick)
                .in_networks(&[&network], name)
        };
        let other = words.create(&member("other")).await;
        // Readers of the record do not find a member of the network.
        fs::write(fixture.container(&other).join("container.json"), "").unwrap();
        let engine = fixture.engine();
        let id = words.create(&member("web")).await;
        assert_eq!(members(&fixture, &network), sorted([&other, &id]));
        engine
            .rename_container(&id, &words.name("renamed"))
            .await
            .unwrap();
        assert_eq!(members(&fixture, &network), sorted([&other, &id]));
        engine.remove_container(&id).await.unwrap();
        assert_eq!(members(&fixture, &network), sorted([&other]));
    });
}

#[test]
fn tables_that_a_kill_left_behind_a_change_are_written_at_the_start() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let network = words.network("front").await;
        let before = table(&fixture, &network);
        let service = words
            .service("web", &Program::Tick)
            .in_networks(&[&network], "web");
        let id = words.create(&service).await;
        let path = fixture.state().join("networks").join(&network);
        record::write(&path.join(record::MEMBERS), &before).unwrap();
        fixture.reopen().await;
        assert_eq!(members(&fixture, &network), sorted([&id]));
    });
}

fn table(fixture: &WasmFixture, network: &str) -> Members {
    let folder = fixture.state().join("networks").join(network);
    record::read(&folder.join(record::MEMBERS))
        .unwrap()
        .unwrap()
}

/// The containers in a network's table.
fn members(fixture: &WasmFixture, network: &str) -> Vec<String> {
    let members = table(fixture, network).0.into_iter();
    let mut ids: Vec<_> = members
        .map(|member| {
            let name = member.folder.file_name().unwrap();
            name.to_str().unwrap().to_owned()
        })
        .collect();
    ids.sort();
    ids
}

fn sorted<const N: usize>(ids: [&ContainerId; N]) -> Vec<String> {
    let mut ids: Vec<_> = ids.into_iter().map(|id| id.as_str().to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn anonymous_volumes_go_with_their_container_and_memory_with_each_start() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        for (name, kept, mount) in [
            (
                "anonymous",
                2,
                Some(Mount::Anonymous {
                    target: "/data".into(),
                }),
            ),
            (
                "memory",
                1,
                Some(Mount::Tmpfs {
                    target: "/data/".into(),
                    size: 0,
                }),
            ),
            ("tmpfs", 1, None),
        ] {
            let mut service = fixture.runs(name, &["append", "/data/notes", "note"]);
            match mount {
                Some(mount) => service.config.mounts.push(mount),
                None => {
                    service.config.tmpfs.insert("/data".into(), String::new());
                }
            }
            let id = fixture.start(&service).await;
            words.wait_for(&id, ContainerState::Exited).await;
            fixture.engine().start_container(&id).await.unwrap();
            words.wait_for(&id, ContainerState::Exited).await;
            let mut logs = fixture
                .engine()
                .logs(&id, engine::LogsFrom::Start)
                .await
                .unwrap();
            for _ in 0..=kept {
                let line = crate::suite::next_line(&mut logs).await.unwrap();
                assert_eq!(line.message, "note", "{name}");
            }
            fixture.engine().remove_container(&id).await.unwrap();
            assert!(crate::suite::next_line(&mut logs).await.is_none(), "{name}");
            assert!(!fixture.container(&id).exists());
        }
    });
}

#[test]
fn services_have_a_root_of_their_own() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let mut service = fixture.runs("writer", &["append", "notes", "here"]);
        service.config.working_dir = "/srv/app".into();
        assert_eq!(
            words.finish(&service).await,
            (Some(0), vec!["here".to_owned()])
        );
        service.config.read_only = true;
        assert_eq!(words.finish(&service).await.0, Some(1));
        for path in [
            "/etc/passwd",
            "/../../../../etc/passwd",
            "/proc/self/environ",
        ] {
            let (code, _) = words.finish(&fixture.runs("reader", &["read", path])).await;
            assert_eq!(code, Some(1), "{path}");
        }
    });
}

#[test]
fn supervisors_folder_is_shared_with_the_service() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let ours = fixture
            .folder()
            .join("host/tmp/platform-supervisor/services/1/web");
        let elsewhere = fixture.folder().join("elsewhere");
        let bind = |source: &std::path::Path, target: &str| Mount::Bind {
            source: source.display().to_string(),
            target: target.into(),
            read_only: false,
        };
        let mut service = fixture.runs("web", &["append", "/tmp/platform/updates.lock", "locked"]);
        service.config.mounts = vec![bind(&ours, "/tmp/platform"), bind(&elsewhere, "/elsewhere")];
        assert_eq!(words.finish(&service).await.0, Some(0));
        assert_eq!(
            fs::read_to_string(ours.join("updates.lock")).unwrap(),
            "locked\n"
        );
        // A missing folder of the host is not created.
        assert!(!elsewhere.exists());
    });
}

#[test]
fn link_in_a_volume_leads_nowhere_else() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let volume = words.volume("data").await;
        let data = fixture.state().join("volumes").join(&volume).join("data");
        fs::write(fixture.folder().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(fixture.folder().join("secret"), data.join("link")).unwrap();
        let mut service = fixture.runs("reader", &["read", "/data/link"]);
        service.config.mounts.push(Mount::Volume {
            source: volume,
            target: "/data".into(),
            read_only: false,
        });
        let (code, lines) = words.finish(&service).await;
        assert_eq!((code, lines), (Some(1), vec![]));
    });
}

#[test]
fn fields_without_a_meaning_here_are_named() {
    test(async |fixture| {
        let quiet = make(&fixture, fixture.runs("quiet", &["tick"]))
            .await
            .unwrap();
        assert_eq!(quiet, [""; 0]);
        let mut service = fixture.runs("loud", &["tick"]);
        service.config.privileged = true;
        service.config.cap_add = vec!["NET_ADMIN".into()];
        service.config.pid = "host".into();
        service.config.stop_signal = Some("SIGINT".into());
        let warnings = make(&fixture, service).await.unwrap();
        for field in ["privileged", "cap_add", "pid", "stop_signal"] {
            let names = |warning: &&String| warning.contains(&format!("`{field}`"));
            assert_eq!(
                warnings.iter().filter(names).count(),
                1,
                "{field}: {warnings:?}"
            );
        }
        assert_eq!(warnings.len(), 4, "{warnings:?}");
    });
}

#[test]
fn container_of_what_is_not_there_is_not_made() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let lost_network = fixture.runs("a", &["tick"]).in_networks(&["lost"], "a");
        let mut lost_volume = fixture.runs("b", &["tick"]);
        lost_volume.config.mounts.push(Mount::Volume {
            source: "lost".into(),
            target: "/data".into(),
            read_only: false,
        });
        for service in [lost_network, lost_volume] {
            let made = make(&fixture, service).await;
            assert!(
                matches!(made, Err(EngineError::NotFound { .. })),
                "{made:?}"
            );
        }
        let mut alone = fixture.runs("c", &["tick"]);
        alone.config.network_mode = NetworkMode::Service("web".parse().unwrap());
        let made = make(&fixture, alone).await;
        assert!(matches!(made, Err(EngineError::Invalid(_))), "{made:?}");
        let mut misnamed = fixture.runs("d", &["tick"]);
        misnamed.name = "../d".into();
        let made = make(&fixture, misnamed).await;
        assert!(matches!(made, Err(EngineError::Invalid(_))), "{made:?}");
        assert_eq!(words.engine().containers().await.unwrap(), []);
    });
}

#[test]
fn removing_a_running_container_ends_its_process() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let id = fixture.start(&words.service("tick", &Program::Tick)).await;
        let process = fixture.process(&id);
        fixture.engine().remove_container(&id).await.unwrap();
        eventually("its process ends", async || {
            (!process.is_alive()).then_some(())
        })
        .await;
    });
}

async fn make(fixture: &WasmFixture, service: Service) -> Result<Vec<String>, EngineError> {
    let words: &dyn Fixture = fixture;
    let image = words.pull().await;
    let spec = ContainerSpec {
        name: &service.name,
        config: &service.config,
        init_environment: &service.init_environment,
        image_id: &image.id,
        network_container: None,
    };
    Ok(fixture.engine().create_container(&spec).await?.warnings)
}
