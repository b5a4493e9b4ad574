//! The events that plugins receive (`wit/events.wit`), created from the reports of the supervisor's parts.

use device_types::Event;
use device_types::event::ServiceChanged;
use model::{BootId, ServiceState};
use plugins::{PluginEvent, ServiceChange, TargetProgress};
use secure_fs::SecureFile;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::plugins_slot::PluginsSlot;

/// The longest mark of a boot, in bytes.
const LONGEST_MARK: u64 = 256;

/// The plugins that receive events, once they are attached. Clones share them.
#[derive(Clone)]
pub(crate) struct PluginEvents(pub(crate) PluginsSlot);

impl PluginEvents {
    /// Passes an event of the reconciler to the plugins. Returns at once.
    pub(crate) fn publish(&self, event: &Event) {
        if let (Some(plugins), Some(event)) = (self.0.get(), for_plugins(event)) {
            plugins.publish(&event);
        }
    }

    /// Notifies plugins of each change in whether the device reaches its cloud.
    pub(crate) fn follow_connection(
        &self,
        mut problems: watch::Receiver<Option<String>>,
        stop: &CancellationToken,
    ) {
        let events = self.clone();
        let following = async move {
            let mut is_there = true;
            while problems.changed().await.is_ok() {
                let event =
                    connection_event(problems.borrow_and_update().as_deref(), &mut is_there);
                if let (Some(plugins), Some(event)) = (events.0.get(), event) {
                    plugins.publish(&event);
                }
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(following));
    }
}

fn for_plugins(event: &Event) -> Option<PluginEvent> {
    let word = |state: Option<ServiceState>| state.map(|state| <&str>::from(state).to_owned());
    Some(match event {
        Event::Service(ServiceChanged {
            app_id,
            service,
            status,
            before,
            ..
        }) => PluginEvent::Services(vec![ServiceChange {
            app_id: app_id.0,
            service: service.to_string(),
            status: word(*status),
            before: word(*before),
        }]),
        Event::ApplyBegin(_) => PluginEvent::Target(TargetProgress::Applying),
        Event::ApplyEnd(end) if end.reached => PluginEvent::Target(TargetProgress::Reached),
        Event::ApplyEnd(_) => PluginEvent::Target(TargetProgress::Stopped),
        _ => return None,
    })
}

/// Returns the event for plugins if the cloud is now reached, or no longer, and updates `is_there`. `problem` is why it
/// cannot be reached.
fn connection_event(problem: Option<&str>, is_there: &mut bool) -> Option<PluginEvent> {
    let was_there = std::mem::replace(is_there, problem.is_none());
    (*is_there != was_there).then_some(PluginEvent::Connection(*is_there))
}

/// Returns whether the supervisor has not run in this boot before, and records that it has now. Without a mark or a
/// boot it counts as the first start.
pub(crate) fn is_first_start(mark: Option<&SecureFile>, boot: Option<&BootId>) -> bool {
    let (Some(mark), Some(boot)) = (mark, boot) else {
        return true;
    };
    let marked = mark.read(LONGEST_MARK).ok().flatten();
    if marked.is_some_and(|marked| marked.trim_ascii() == boot.as_str().as_bytes()) {
        return false;
    }
    if let Err(error) = mark.replace(boot.as_str().as_bytes()) {
        tracing::warn!(%error, "failed to record that the supervisor has run in this boot");
    }
    true
}

#[cfg(test)]
mod tests {
    use device_types::event::{ApplyBegin, ApplyEnd, PowerRequested};
    use model::{AppId, Branding, PowerAction};

    use super::*;
    use crate::run_folder::RunFolder;

    fn service(before: Option<ServiceState>, status: Option<ServiceState>) -> Event {
        Event::Service(ServiceChanged {
            app_id: AppId(7),
            service: "main".parse().unwrap(),
            status,
            before,
            container_id: None,
            image: None,
        })
    }

    #[test]
    fn plugins_receive_what_happens_to_services_and_to_the_target() {
        let change = |before: Option<&str>, status: Option<&str>| {
            Some(PluginEvent::Services(vec![ServiceChange {
                app_id: 7,
                service: "main".to_owned(),
                status: status.map(str::to_owned),
                before: before.map(str::to_owned),
            }]))
        };
        let target = |progress| Some(PluginEvent::Target(progress));
        let (running, exited) = (Some(ServiceState::Running), Some(ServiceState::Exited));
        for (event, expected) in [
            (service(None, running), change(None, Some("Running"))),
            (
                service(running, exited),
                change(Some("Running"), Some("exited")),
            ),
            (service(exited, None), change(Some("exited"), None)),
            (
                Event::ApplyBegin(ApplyBegin { local_mode: false }),
                target(TargetProgress::Applying),
            ),
            (
                Event::ApplyEnd(ApplyEnd { reached: true }),
                target(TargetProgress::Reached),
            ),
            (
                Event::ApplyEnd(ApplyEnd { reached: false }),
                target(TargetProgress::Stopped),
            ),
            (
                Event::Power(PowerRequested {
                    action: PowerAction::Reboot,
                    force: false,
                }),
                None,
            ),
        ] {
            assert_eq!(for_plugins(&event), expected, "{event:?}");
        }
    }

    #[test]
    fn plugins_receive_each_change_of_the_connection_once() {
        let mut is_there = true;
        for (problem, expected) in [
            (None, None),
            (Some("no route"), Some(false)),
            (Some("no answer for 10 s"), None),
            (None, Some(true)),
            (None, None),
        ] {
            let event = connection_event(problem, &mut is_there);
            assert_eq!(event, expected.map(PluginEvent::Connection), "{problem:?}");
        }
    }

    #[test]
    fn a_start_is_the_first_of_its_boot_once() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(root.path(), &Branding::default());
        let mark = folder.start_mark();
        let boot = |id: &str| id.parse::<BootId>().unwrap();
        let first = |id: &str| is_first_start(mark.as_ref(), Some(&boot(id)));
        assert!(first("one"));
        assert!(!first("one"));
        assert!(first("two"));
        assert!(!first("two"));
        assert!(is_first_start(None, Some(&boot("two"))));
    }
}
