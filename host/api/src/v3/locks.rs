//! `/v3/locks`: who keeps services from being updated, and a service's own update lock, taken and released without a
//! file (docs/spec/device.md#locks). A service that can write files may still create one.

mod lease_request;
mod lock;

use axum::extract::{FromRequestParts, State};
use http::request::Parts;
use http::{Method, StatusCode};
use model::{AppId, LockRefusal, ServiceName};
use schemars::JsonSchema;
use serde::Serialize;

use self::lease_request::LeaseRequest;
use self::lock::Lock;
use crate::answer::{Failure, Json};
use crate::body::Fields;
use crate::caller::Caller;
use crate::extract::Path;
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::services;
use crate::state::{Api, RouteState};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v3/locks", list)
            .summary("the update locks that are held now, and by whom")
            .answering([Answer::json("the locks", schema::<Locks>)]),
        Route::new(Method::PUT, "/v3/locks/:appId/:service", put)
            .summary("takes the update lock of a service for a time, or renews it")
            .taking_document(schema::<LeaseRequest>)
            .answering([
                Answer::json("the lock is held", schema::<LeaseAnswer>),
                Answer::failed(
                    400,
                    "a field is wrong, and the message names it",
                ),
                Answer::OTHER_APP,
                Answer::failed(
                    404,
                    "the device has no such app or service",
                ),
                ELSEWHERE,
                BUSY,
            ]),
        Route::new(Method::DELETE, "/v3/locks/:appId/:service", delete)
            .summary("releases the update lock that was taken over the API")
            .answering([
                Answer::json("the lock is released", schema::<LockReleaseAnswer>),
                Answer::failed(400, "`appId` is not a number"),
                Answer::OTHER_APP,
                Answer::failed(
                    404,
                    "the device has no such app or service, or the service has no lock that was taken over the API",
                ),
                ELSEWHERE,
                BUSY,
            ]),
    ]
}

const ELSEWHERE: Answer = Answer::failed(
    409,
    "the service has a lock that was not taken over the API",
);
const BUSY: Answer = Answer::failed(423, "the supervisor is changing the app right now");

/// The body of `GET /v3/locks`.
#[derive(Serialize, JsonSchema)]
struct Locks {
    status: &'static str,
    /// The locks that the caller's key covers, ordered by app and service.
    locks: Vec<Lock>,
}

/// The body of `PUT /v3/locks/:appId/:service`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LockAnswer")]
struct LeaseAnswer {
    status: &'static str,
    lock: Lock,
}

/// The body of `DELETE /v3/locks/:appId/:service`.
#[derive(Serialize, JsonSchema)]
struct LockReleaseAnswer {
    status: &'static str,
}

async fn list(State(api): State<Api>, caller: Caller) -> Result<Json<Locks>, Failure> {
    let locks = api.device.update_locks().await;
    let locks = locks.map_err(|cause| Failure::Internal {
        doing: "read the update locks",
        cause: cause.into(),
    })?;
    let covered = locks
        .into_iter()
        .filter(|lock| caller.scope.covers(lock.app));
    Ok(Json(Locks {
        status: "success",
        locks: covered.map(Lock::from_update_lock).collect(),
    }))
}

async fn put(
    State(api): State<Api>,
    LockTarget { app, service }: LockTarget,
    Fields(lease): Fields<LeaseRequest>,
) -> Result<Json<LeaseAnswer>, Failure> {
    let service = service_of_device(&api, app, &service)?;
    let lock = api
        .device
        .lease_lock(lease.into_lock_request(app, service)?);
    let lock = lock.await?;
    Ok(Json(LeaseAnswer {
        status: "success",
        lock: Lock::from_update_lock(lock),
    }))
}

async fn delete(
    State(api): State<Api>,
    LockTarget { app, service }: LockTarget,
) -> Result<Json<LockReleaseAnswer>, Failure> {
    let result = match (service_of_device(&api, app, &service), service.parse()) {
        (Ok(service), _) => api.device.give_lock_back(app, service).await,
        // A service that has disappeared meanwhile may have left its lock.
        (Err(unknown), Ok(service)) => match api.device.give_lock_back(app, service).await {
            Err(LockRefusal::NotHeld(_)) => return Err(unknown),
            result => result,
        },
        (Err(unknown), Err(_)) => return Err(unknown),
    };
    result?;
    Ok(Json(LockReleaseAnswer { status: "success" }))
}

/// The service in a path, whose app the key covers.
struct LockTarget {
    app: AppId,
    service: String,
}

impl FromRequestParts<RouteState> for LockTarget {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &RouteState) -> Result<Self, Failure> {
        let Path([app, service]) = Path::from_request_parts(parts, state).await?;
        let number = lenient::parse_int(&app).filter(|number| *number > 0);
        let app = number.and_then(services::app_id);
        let app = app.ok_or_else(|| Failure::invalid("Invalid app id"))?;
        let caller = Caller::from_request_parts(parts, state).await?;
        if !caller.scope.covers(app) {
            return Err(Failure::out_of_scope());
        }
        Ok(LockTarget { app, service })
    }
}

/// Returns the service, if the device runs it or should run it.
fn service_of_device(api: &Api, id: AppId, name: &str) -> Result<ServiceName, Failure> {
    let missing = |what: String| Failure::Refused(StatusCode::NOT_FOUND, what);
    let status = api.device.status();
    let app = status.apps.values().find(|app| app.id == id);
    let app = app.ok_or_else(|| missing(format!("there is no app {id} on this device")))?;
    let mut services = app.services.iter();
    let service = services.find(|service| service.name.as_str() == name);
    service
        .map(|service| service.name.clone())
        .ok_or_else(|| missing(format!("app {id} has no service of that name")))
}

impl From<LockRefusal> for Failure {
    fn from(refusal: LockRefusal) -> Self {
        let (status, why) = match refusal {
            LockRefusal::HeldByFile(why) => (StatusCode::CONFLICT, why),
            LockRefusal::HeldBySupervisor(why) => (StatusCode::LOCKED, why),
            LockRefusal::NotHeld(why) => (StatusCode::NOT_FOUND, why),
            LockRefusal::Failed(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
        };
        Failure::Refused(status, why)
    }
}
