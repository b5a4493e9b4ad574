//! The service that a request refers to: the checks common to all actions on services, in the order that clients rely
//! on (docs/spec/device.md#v2-services).

use http::StatusCode;
use model::{Action, AppId, AppStatus, AppUuid, DeviceStatus, ServiceStatus, Verb};

use crate::action_body::ServiceAction;
use crate::answer::Failure;
use crate::state::Api;

/// The app does not exist, or has no container.
pub(crate) const APP_NOT_FOUND: &str =
    "App not found: an app needs to be installed for this endpoint to work";
/// The request matches no service of the app.
pub(crate) const SERVICE_NOT_FOUND: &str =
    "Service not found, a container must exist for this endpoint to work";
/// The service is being removed.
pub(crate) const NOT_IN_TARGET: &str = "Service does not exist in target release";
/// The request names no service.
pub(crate) const PARAMS_MISSING: &str = "Service name or image id was not given, or the app has several \
     containers: use the v2 service endpoints";

/// An app with its services.
pub(crate) struct CurrentApp<'a> {
    pub(crate) uuid: &'a AppUuid,
    pub(crate) app: &'a AppStatus,
    /// Whether an action on the app is under way.
    is_acted_on: bool,
}

/// Returns the app with this number, if it has at least one container, or gets its containers back from an action that
/// is under way: another action then waits for its turn (docs/spec/device.md#v2-services).
pub(crate) fn current_app(status: &DeviceStatus, number: i64) -> Option<CurrentApp<'_>> {
    let id = app_id(number)?;
    current_apps(status).find(|current| current.app.id == id && current.services().next().is_some())
}

/// Returns all services of the device on which actions are possible.
pub(crate) fn current_services(status: &DeviceStatus) -> impl Iterator<Item = &ServiceStatus> {
    current_apps(status).flat_map(|current| current.services())
}

fn current_apps(status: &DeviceStatus) -> impl Iterator<Item = CurrentApp<'_>> {
    status.apps.iter().map(|(uuid, app)| CurrentApp {
        uuid,
        app,
        is_acted_on: status.acting.contains(uuid),
    })
}

impl<'a> CurrentApp<'a> {
    /// Returns services that have a container, in the order of their creation, and those whose container an action has
    /// removed.
    pub(crate) fn services(&self) -> impl Iterator<Item = &'a ServiceStatus> + use<'a> {
        let is_acted_on = self.is_acted_on;
        let services = self.app.services.iter();
        services.filter(move |service| {
            service.container.is_some() || (is_acted_on && service.in_target)
        })
    }

    /// Returns the service that a body names by `serviceName`, `imageId` or both.
    ///
    /// # Errors
    /// Returns 404 if there is no such service, or none in the target; 400 if the two disagree.
    pub(crate) fn named(&self, body: &ServiceAction) -> Result<&'a ServiceStatus, Failure> {
        let missing = || Failure::Plain(StatusCode::NOT_FOUND, SERVICE_NOT_FOUND);
        let by_name = body.service_name.as_deref().map(|name| {
            self.services()
                .find(|service| service.name.as_str() == name)
                .ok_or_else(missing)
        });
        let by_image = body.image_id.map(|id| {
            self.services()
                .find(|service| i64::try_from(service.image_id.0) == Ok(id))
                .ok_or_else(missing)
        });
        let service = match (by_name.transpose()?, by_image.transpose()?) {
            (Some(named), Some(by_image)) if named.name != by_image.name => {
                return Err(Failure::invalid(format!(
                    "`serviceName` is service `{}`, but `imageId` is of service `{}`: give one of them, or \
                     both of one service",
                    named.name, by_image.name
                )));
            }
            (Some(service), _) | (None, Some(service)) => service,
            (None, None) => return Err(missing()),
        };
        in_target(service)
    }
}

/// Returns the service, unless it is being removed.
pub(crate) fn in_target(service: &ServiceStatus) -> Result<&ServiceStatus, Failure> {
    if service.in_target {
        Ok(service)
    } else {
        Err(Failure::Plain(StatusCode::NOT_FOUND, NOT_IN_TARGET))
    }
}

/// Converts an app's number from a path or a body.
pub(crate) fn app_id(number: i64) -> Option<AppId> {
    u64::try_from(number).ok().map(AppId)
}

/// Carries out an action on all services of the app with this number.
///
/// # Errors
/// Returns 503 if the device does not run the app, or the failure of the action.
pub(crate) async fn act_on_app(
    api: &Api,
    number: i64,
    verb: Verb,
    force: bool,
) -> Result<(), Failure> {
    let status = api.device.status();
    let current = current_app(&status, number).ok_or_else(|| {
        Failure::unavailable(format!(
            "Application with ID {number} is not in the current state"
        ))
    })?;
    let action = Action {
        app: current.uuid.clone(),
        verb,
        force,
    };
    drop(status);
    Ok(api.device.act(action).await?)
}
