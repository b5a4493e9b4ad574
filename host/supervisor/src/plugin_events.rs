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
                let is_there_now = problems.borrow_and_update().is_none();
                if is_there_now != is_there
                    && let Some(plugins) = events.0.get()
                {
                    plugins.publish(&PluginEvent::Connection(is_there_now));
                }
                is_there = is_there_now;
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

/// Returns whether the supervisor has not run in this boot before, and records that it has now. Without a mark or a
/// boot it counts as the first start.
/// first start.
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
    use model::Branding;

    use super::*;
    use crate::run_folder::RunFolder;

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
