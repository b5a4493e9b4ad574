//! What the reconciler, the plugins and the power switch tell of, in the API's words.

use std::sync::Arc;
use std::time::Duration;

use api::{
    ApplyBegin, ApplyEnd, Audience, Download, Events, Happening, LockWait, Moment, PluginFault,
    PowerRequested, ReleaseChanged, ServiceChanged, StepFailed,
};
use model::{PowerAction, ReleaseState, ServiceState};

/// What the reconciler is to call.
pub(crate) fn told_to(events: &Events) -> Arc<dyn Fn(reconcile::Happening) + Send + Sync> {
    let events = events.clone();
    Arc::new(move |happening| {
        for (audience, happening) in shown(happening) {
            events.publish(audience, happening);
        }
    })
}

/// The host is going down.
pub(crate) fn power(action: PowerAction, force: bool) -> Happening {
    Happening::Power(PowerRequested {
        action: match action {
            PowerAction::Reboot => "reboot",
            PowerAction::PowerOff => "power-off",
        },
        force,
    })
}

/// A plugin failed.
pub(crate) fn fault(plugin: &str, message: &str) -> Happening {
    Happening::PluginFault(PluginFault {
        plugin: plugin.to_owned(),
        message: message.to_owned(),
    })
}

/// One event, or one for each app that it concerns.
fn shown(happening: reconcile::Happening) -> Vec<(Audience, Happening)> {
    use reconcile::Happening as Told;
    let one = match happening {
        Told::Service {
            app,
            service,
            state,
            before,
            container,
            image,
        } => (
            Audience::App(app),
            Happening::Service(ServiceChanged {
                app_id: app.0,
                service: service.into(),
                status: state.map(ServiceState::as_str),
                before: before.map(ServiceState::as_str),
                container_id: container.map(Into::into),
                image: image.map(Into::into),
            }),
        ),
        Told::Release {
            app,
            state,
            commit,
            target,
        } => (
            Audience::App(app),
            Happening::Release(ReleaseChanged {
                app_id: app.0,
                status: state.map(ReleaseState::as_str),
                commit: commit.map(Into::into),
                target_commit: target.map(Into::into),
            }),
        ),
        Told::Download {
            app,
            service,
            image,
            percent,
        } => (
            Audience::App(app),
            Happening::Download(Download {
                app_id: app.0,
                service: service.into(),
                image: image.into(),
                progress: percent,
            }),
        ),
        Told::LockWait {
            app,
            reason,
            retry_in,
        } => (
            Audience::App(app),
            Happening::LockWait(LockWait {
                app_id: app.0,
                message: reason,
                retry_at: from_now(retry_in),
            }),
        ),
        Told::StepFailed {
            subject,
            apps,
            reason,
            failures,
            retry_in,
        } => {
            let failed = |app_id| {
                Happening::StepFailed(StepFailed {
                    app_id,
                    subject: subject.to_string(),
                    message: reason.clone(),
                    failures,
                    retry_at: from_now(retry_in),
                })
            };
            if apps.is_empty() {
                return vec![(Audience::Owner, failed(None))];
            }
            let each = apps
                .iter()
                .map(|app| (Audience::App(*app), failed(Some(app.0))));
            return each.collect();
        }
        Told::ApplyBegin { local_mode } => (
            Audience::Everyone,
            Happening::ApplyBegin(ApplyBegin { local_mode }),
        ),
        Told::ApplyEnd { reached } => (
            Audience::Everyone,
            Happening::ApplyEnd(ApplyEnd { reached }),
        ),
    };
    vec![one]
}

fn from_now(delay: Duration) -> Moment {
    let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
    Moment(Moment::now().0.saturating_add(delay))
}
