//! Lets the services of an app report themselves whether a new release works: the example of the gate for releases.
//!
//! After an update the app's own service, or somebody on the site, sends `PUT /v3/release-check` with `"healthy": true`
//! or with `false` and a reason. A release without such a report within its time is not healthy, so the device goes
//! back to the last healthy one.
use std::time::Duration;

use serde::{Deserialize, Serialize};
use supervisor_sdk::events::{Answer, Event, InstalledRelease};
use supervisor_sdk::{Caller, Error, Json, Path, plugin, store};

plugin! {
    capabilities: { store => "stores the report about the last installed release" }
    routes: {
        GET "/v3/release-check/:app" => show,
        PUT "/v3/release-check/:app" => report,
    }
    events: ["health-gate"]
    on_event => watch
}

/// The report about the release of an app.
#[derive(Serialize, Deserialize)]
struct Report {
    healthy: bool,
    /// The reason why it is not healthy, for people.
    #[serde(default)]
    reason: String,
    /// The release; if missing, the running one.
    commit: Option<String>,
}

async fn show(caller: Caller, Path(app): Path<u64>) -> Result<Json<Report>, Error> {
    check(&caller, app)?;
    let report = store::get_json(&key(app)).await?;
    let missing = || Error::not_found("there is no report about the release of this app");
    report.map(Json).ok_or_else(missing)
}

async fn report(
    caller: Caller,
    Path(app): Path<u64>,
    Json(report): Json<Report>,
) -> Result<(), Error> {
    check(&caller, app)?;
    if !report.healthy && report.reason.trim().is_empty() {
        return Err(Error::bad_request(
            "`reason` says why the release is not healthy",
        ));
    }
    store::set_json(&key(app), &report).await?;
    Ok(())
}

/// Checks that a service reports only about its own app.
fn check(caller: &Caller, app: u64) -> Result<(), Error> {
    if caller.covers(app) {
        return Ok(());
    }
    Err(Error::unauthorized("this key is not for that app"))
}

fn key(app: u64) -> String {
    format!("app/{app}")
}

async fn watch(event: Event) -> Result<Answer, Error> {
    let Event::HealthGate(release) = event else {
        return Ok(Answer::GoOn);
    };
    let report: Option<Report> = store::get_json(&key(release.app_id)).await?;
    let answer = match report.filter(|report| concerns(report, &release)) {
        Some(Report { healthy: true, .. }) => Answer::GoOn,
        Some(report) => Answer::refuse(report.reason),
        None => Answer::postpone(
            "nobody has confirmed that it works",
            Duration::from_secs(10),
        ),
    };
    if answer == Answer::GoOn {
        // The next release must be confirmed again.
        store::delete(&key(release.app_id)).await?;
    }
    Ok(answer)
}

fn concerns(report: &Report, release: &InstalledRelease) -> bool {
    let commit = report.commit.as_ref();
    commit.is_none_or(|commit| *commit == release.commit)
}
