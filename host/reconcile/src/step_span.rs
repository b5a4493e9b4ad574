//! The span of each step: what is logged while a step runs can be grouped and filtered by its subject.

use model::{OsVersion, ServiceKey};
use plan::{LockedWork, Step};
use tracing::{Span, info_span};

pub(crate) fn for_step(step: &Step) -> Span {
    match step {
        Step::PullImage { image, engine, .. } => {
            info_span!("pull-image", %image, engine = engine.map(display))
        }
        Step::RemoveImage { image, engine } => {
            info_span!("remove-image", %image, engine = engine.map(display))
        }
        Step::CreateComponent { engine, component } => {
            let kind = component.kind();
            info_span!("create-component", %kind, name = component.engine_name(), %engine)
        }
        Step::RemoveComponent {
            engine, kind, name, ..
        } => info_span!("remove-component", %kind, name, %engine),
        Step::RemoveDead { service, container } => {
            let ServiceKey { app, service } = service;
            info_span!("remove-dead", %app, %service, container = %container.id, engine = %container.engine)
        }
        Step::StartExisting {
            service, container, ..
        } => {
            let ServiceKey { app, service } = service;
            info_span!("start-existing", %app, %service, container = %container.id, engine = %container.engine)
        }
        Step::RecordCommit { app, commit } => info_span!("record-commit", %app, %commit),
        Step::ForgetCommit { app } => info_span!("forget-commit", %app),
        Step::Configure { part, .. } => info_span!("configure-host", %part),
        Step::StageOs { os } => info_span!("stage-os", version = %os.version),
        Step::CommitOs { version } => info_span!("commit-os", %version),
        Step::RollBackOs { version } => info_span!("roll-back-os", %version),
        Step::Reboot { reasons, activates } => {
            info_span!(
                "reboot",
                reasons = reasons.join(", "),
                version = activates.as_ref().map(display)
            )
        }
        // The work under the locks has its own spans, and the release of locks is no task.
        Step::UnderLocks(_) | Step::ReleaseLocks { .. } => Span::none(),
    }
}

/// Returns the span of activating a version of the operating system, which is part of a reboot.
pub(crate) fn for_activation(version: &OsVersion) -> Span {
    info_span!("activate-os", %version)
}

/// Returns the span of taking an app's update locks.
pub(crate) fn for_locking(locked: &LockedWork) -> Span {
    info_span!("lock-app", app = %locked.app, app_id = %locked.app_id)
}

/// Returns the span of all work on a service under its lock.
pub(crate) fn for_service(key: &ServiceKey) -> Span {
    info_span!(parent: None, "change-service", app = %key.app, service = %key.service)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use model::{DesiredOs, EngineKind};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(line)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(span: impl FnOnce() -> Span) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            span().in_scope(|| tracing::info!("the sentence"));
        });
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn what_is_logged_in_a_step_names_what_the_step_is_about() {
        let app = "0123456789abcdef0123456789abcdef";
        let service = ServiceKey {
            app: app.parse().unwrap(),
            service: "web".parse().unwrap(),
        };
        let pull = |engine| Step::PullImage {
            image: "web:1".parse().unwrap(),
            engine,
            users: Vec::new(),
        };
        let version = || "2.1".parse::<OsVersion>().unwrap();
        let reboot = |activates| Step::Reboot {
            reasons: vec!["the host name".to_owned(), "the firewall".to_owned()],
            activates,
        };
        for (line, expected) in [
            (
                logged(|| for_step(&pull(None))),
                "pull-image{image=web:1}".to_owned(),
            ),
            (
                logged(|| for_step(&pull(Some(EngineKind::Wasm)))),
                "pull-image{image=web:1 engine=wasm}".to_owned(),
            ),
            (
                logged(|| for_service(&service)),
                format!("change-service{{app={app} service=web}}"),
            ),
            (
                logged(|| {
                    let os = DesiredOs {
                        version: version(),
                        bundle: "https://os.example/bundle".parse().unwrap(),
                    };
                    for_step(&Step::StageOs { os })
                }),
                "stage-os{version=2.1}".to_owned(),
            ),
            (
                logged(|| for_step(&Step::CommitOs { version: version() })),
                "commit-os{version=2.1}".to_owned(),
            ),
            (
                logged(|| for_step(&Step::RollBackOs { version: version() })),
                "roll-back-os{version=2.1}".to_owned(),
            ),
            (
                logged(|| for_step(&reboot(None))),
                "reboot{reasons=\"the host name, the firewall\"}".to_owned(),
            ),
            (
                logged(|| for_step(&reboot(Some(version())))),
                "reboot{reasons=\"the host name, the firewall\" version=2.1}".to_owned(),
            ),
            (
                logged(|| for_activation(&version())),
                "activate-os{version=2.1}".to_owned(),
            ),
        ] {
            assert!(line.contains(&expected), "{line}");
            assert!(line.contains("the sentence"), "{line}");
        }
    }
}
