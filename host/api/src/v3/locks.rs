//! `/v3/locks`: who keeps services from being updated, and a service's own update lock taken and given
//! back without a file (docs/spec/device.md#locks). A service that can write files may go on making one.

use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use device_types::Moment;
use http::request::Parts;
use http::{Method, StatusCode};
use model::{
    AppId, LockHolder, LockKind, LockRefusal, LockRequest, MAX_LOCK_REASON, MAX_LOCK_TTL,
    ServiceName, UpdateLock,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::answer::{Failure, Json};
use crate::app::Api;
use crate::auth::Caller;
use crate::body::Fields;
use crate::extract::Path;
use crate::operation::{Answer, schema};
use crate::routes::Route;
use crate::services;

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
                    StatusCode::BAD_REQUEST,
                    "a field is wrong, and the message names it",
                ),
                Answer::OTHER_APP,
                Answer::failed(
                    StatusCode::NOT_FOUND,
                    "the device has no such app or service",
                ),
                ELSEWHERE,
                BUSY,
            ]),
        Route::new(Method::DELETE, "/v3/locks/:appId/:service", delete)
            .summary("releases the update lock that was taken over the API")
            .answering([
                Answer::json("the lock is released", schema::<Done>),
                Answer::failed(StatusCode::BAD_REQUEST, "`appId` is not a number"),
                Answer::OTHER_APP,
                Answer::failed(
                    StatusCode::NOT_FOUND,
                    "the device has no such app or service, or the service has no lock that was taken over the API",
                ),
                ELSEWHERE,
                BUSY,
            ]),
    ]
}

const ELSEWHERE: Answer = Answer::failed(
    StatusCode::CONFLICT,
    "the service has a lock that was not taken over the API",
);
const BUSY: Answer = Answer::failed(
    StatusCode::LOCKED,
    "the supervisor is changing the app right now",
);

/// What `PUT /v3/locks/:appId/:service` reads. Other fields are refused.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Wish")]
#[expect(dead_code, reason = "its schema alone is of use")]
struct LeaseRequest {
    /// Why the service must not be disturbed, on one line.
    #[schemars(length(min = 1, max = 256))]
    reason: String,
    /// The seconds after which the lock expires.
    #[schemars(range(min = 1, max = 604_800))]
    ttl: u64,
    /// Whether it is put back after a reboot.
    #[serde(default)]
    survives_reboot: bool,
}

/// The body of `GET /v3/locks`.
#[derive(Serialize, JsonSchema)]
struct Locks {
    status: &'static str,
    /// The locks that the caller's key covers, ordered by app and service.
    locks: Vec<Lock>,
}

/// The body of `PUT /v3/locks/:appId/:service`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Taken")]
struct LeaseAnswer {
    status: &'static str,
    lock: Lock,
}

/// The body of `DELETE /v3/locks/:appId/:service`.
#[derive(Serialize, JsonSchema)]
struct Done {
    status: &'static str,
}

/// One update lock.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Lock {
    app_id: u64,
    /// Absent if the folder of the whole app cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    holder: Holder,
    /// The lock file, on the host.
    path: String,
    /// The kind of file at the path; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<LockFileKind>,
    /// Since when the lock is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    since: Option<Moment>,
    /// The reason that was given when the lock was taken over the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// When the lock expires. Only locks that were taken over the API expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    expires: Option<Moment>,
    /// The seconds for which it was taken or last renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    /// Whether a reboot leaves it held.
    #[serde(skip_serializing_if = "Option::is_none")]
    survives_reboot: Option<bool>,
    /// Why the holder is unknown. The lock counts as held.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Who holds a lock.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Holder {
    /// The supervisor, while it changes services of the app.
    Supervisor,
    /// A service, or a person on the host, that created a file or something else at the path.
    File,
    /// A service that took it over this API.
    Api,
    /// Unknown; the lock counts as held.
    Unreadable,
}

/// The kind of file at the path of a lock.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Kind")]
enum LockFileKind {
    File,
    Directory,
    Symlink,
    /// A pipe, a socket or a device.
    Other,
}

impl Lock {
    fn of(lock: UpdateLock) -> Self {
        let of_supervisor = Lock {
            app_id: lock.app.0,
            service: lock.service.map(|service| service.to_string()),
            holder: Holder::Supervisor,
            path: lock.path.to_string_lossy().into_owned(),
            kind: Some(LockFileKind::File),
            since: lock.since_ms.map(Moment),
            reason: None,
            expires: None,
            ttl: None,
            survives_reboot: None,
            error: None,
        };
        match lock.holder {
            LockHolder::Supervisor => of_supervisor,
            LockHolder::File(kind) => Lock {
                holder: Holder::File,
                kind: Some(match kind {
                    LockKind::File => LockFileKind::File,
                    LockKind::Folder => LockFileKind::Directory,
                    LockKind::Link => LockFileKind::Symlink,
                    LockKind::Other => LockFileKind::Other,
                }),
                ..of_supervisor
            },
            LockHolder::Api(lock) => Lock {
                holder: Holder::Api,
                reason: Some(lock.reason),
                expires: Some(Moment(lock.expires_ms)),
                ttl: Some(lock.ttl.as_secs()),
                survives_reboot: Some(lock.survives_reboot),
                ..of_supervisor
            },
            LockHolder::Unreadable(why) => Lock {
                holder: Holder::Unreadable,
                kind: None,
                error: Some(why),
                ..of_supervisor
            },
        }
    }
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
        locks: covered.map(Lock::of).collect(),
    }))
}

async fn put(
    State(api): State<Api>,
    LockTarget { app, service }: LockTarget,
    Fields(body): Fields<Map<String, Value>>,
) -> Result<Json<LeaseAnswer>, Failure> {
    let request = LockRequest {
        app,
        service: service_of_device(&api, app, &service)?,
        reason: reason(&body)?,
        ttl: ttl(&body)?,
        survives_reboot: survives_reboot(&body)?,
    };
    refuse_unknown(&body)?;
    let lock = api.device.lease_lock(request).await?;
    Ok(Json(LeaseAnswer {
        status: "success",
        lock: Lock::of(lock),
    }))
}

async fn delete(
    State(api): State<Api>,
    LockTarget { app, service }: LockTarget,
) -> Result<Json<Done>, Failure> {
    let result = match (service_of_device(&api, app, &service), service.parse()) {
        (Ok(service), _) => api.device.give_lock_back(app, service).await,
        // A service that is gone meanwhile may have left its lock.
        (Err(unknown), Ok(service)) => match api.device.give_lock_back(app, service).await {
            Err(LockRefusal::NotHeld(_)) => return Err(unknown),
            result => result,
        },
        (Err(unknown), Err(_)) => return Err(unknown),
    };
    result?;
    Ok(Json(Done { status: "success" }))
}

/// The service that a path names, whose app the key covers.
struct LockTarget {
    app: AppId,
    service: String,
}

impl FromRequestParts<Api> for LockTarget {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Failure> {
        let Path([app, service]) = Path::from_request_parts(parts, api).await?;
        let number = lenient::parse_int(&app).filter(|number| *number > 0);
        let app = number.and_then(services::app_id);
        let app = app.ok_or_else(|| Failure::invalid("Invalid app id"))?;
        let caller = Caller::from_request_parts(parts, api).await?;
        if !caller.scope.covers(app) {
            return Err(Failure::out_of_scope());
        }
        Ok(LockTarget { app, service })
    }
}

/// The service, if the device runs it or is to run it.
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

fn reason(body: &Map<String, Value>) -> Result<String, Failure> {
    let text = body.get("reason").and_then(Value::as_str);
    let text = text.filter(|text| {
        !text.trim().is_empty() && text.len() <= MAX_LOCK_REASON && !text.contains(char::is_control)
    });
    text.map(str::to_owned).ok_or_else(|| {
        Failure::invalid(format!(
            "`reason` must be text of 1 to {MAX_LOCK_REASON} bytes on one line: why the service must not be \
             disturbed"
        ))
    })
}

fn ttl(body: &Map<String, Value>) -> Result<Duration, Failure> {
    let longest = MAX_LOCK_TTL.as_secs();
    let seconds = body.get("ttl").and_then(|ttl| lenient::int(ttl).ok()?);
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds.filter(|seconds| (1..=longest).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| {
        Failure::invalid(format!(
            "`ttl` must be a whole number of seconds from 1 to {longest}: the time until the lock expires"
        ))
    })
}

fn survives_reboot(body: &Map<String, Value>) -> Result<bool, Failure> {
    match body.get("survivesReboot") {
        None => Ok(false),
        Some(Value::Bool(survives)) => Ok(*survives),
        // What a form can say.
        Some(Value::String(word)) if word == "true" => Ok(true),
        Some(Value::String(word)) if word == "false" => Ok(false),
        Some(_) => Err(Failure::invalid(
            "`survivesReboot` must be true or false; it is false by default",
        )),
    }
}

/// Refuses unknown fields: a client that misspells an option relies on it.
fn refuse_unknown(body: &Map<String, Value>) -> Result<(), Failure> {
    let fields = ["reason", "ttl", "survivesReboot"];
    match body.keys().find(|key| !fields.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(Failure::invalid(format!(
            "`{}` is not a known field: use `reason`, `ttl` and `survivesReboot`",
            key.chars().take(64).collect::<String>().escape_debug()
        ))),
    }
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
