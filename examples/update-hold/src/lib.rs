//! Postpones updates while somebody on the site wants that, and keeps a record of events: the example of events and of
//! the gate for updates.
use std::time::Duration;

use serde::{Deserialize, Serialize};
use supervisor_sdk::events::{Answer, Event};
use supervisor_sdk::{Error, Json, plugin, store};

plugin! {
    capabilities: { store => "keeps who holds up updates, and what happened" }
    routes: {
        GET "/v3/update-hold" => show,
        PUT "/v3/update-hold" => hold,
        DELETE "/v3/update-hold" => release,
    }
    events: ["start", "services", "target", "connection", "update-gate"]
    schedules: { count-down => "every 10s" }
    on_event => watch
}

/// The number of events that are remembered.
const REMEMBERED: usize = 50;

#[derive(Serialize, Deserialize)]
struct Hold {
    /// The reason why updates wait, for people.
    reason: String,
    /// The remaining time in seconds.
    seconds: u32,
}

#[derive(Serialize)]
struct State {
    hold: Option<Hold>,
    events: Vec<String>,
}

async fn show() -> Result<Json<State>, Error> {
    Ok(Json(State {
        hold: store::get_json("hold").await?,
        events: store::get_json("events").await?.unwrap_or_default(),
    }))
}

async fn hold(Json(hold): Json<Hold>) -> Result<(), Error> {
    if hold.reason.trim().is_empty() {
        return Err(Error::bad_request("`reason` says why updates must wait"));
    }
    store::set_json("hold", &hold).await?;
    Ok(())
}

async fn release() -> Result<(), Error> {
    store::delete("hold").await?;
    Ok(())
}

async fn watch(event: Event) -> Result<Answer, Error> {
    remember(&event).await?;
    let hold: Option<Hold> = store::get_json("hold").await?;
    match (event, hold) {
        (Event::UpdateGate(_), Some(hold)) => {
            return Ok(Answer::postpone(hold.reason, Duration::from_secs(10)));
        }
        (Event::Schedule(_), Some(hold)) if hold.seconds <= 10 => store::delete("hold").await?,
        (Event::Schedule(_), Some(mut hold)) => {
            hold.seconds -= 10;
            store::set_json("hold", &hold).await?;
        }
        _ => {}
    }
    Ok(Answer::GoOn)
}

async fn remember(event: &Event) -> Result<(), Error> {
    let line = match event {
        Event::Start { is_first_of_boot } => {
            format!("start, first of this boot: {is_first_of_boot}")
        }
        Event::Schedule(name) => format!("schedule {name}"),
        Event::Services(changes) => {
            let changes = changes.iter().map(|change| {
                let word =
                    |status: &Option<String>| status.clone().unwrap_or_else(|| "none".to_owned());
                format!(
                    "{} {} -> {}",
                    change.service,
                    word(&change.before),
                    word(&change.status)
                )
            });
            format!("services {}", changes.collect::<Vec<_>>().join(", "))
        }
        Event::Target(progress) => format!("target {progress:?}"),
        Event::Connection(is_there) => format!("connection {is_there}"),
        Event::UpdateGate(update) => format!("update-gate {}", update.services.join(", ")),
        _ => "an event of a later version".to_owned(),
    };
    store::update_json("events", |events: Option<Vec<String>>| {
        let mut events = events.unwrap_or_default();
        events.push(line.clone());
        let surplus = events.len().saturating_sub(REMEMBERED);
        events.drain(..surplus);
        events
    })
    .await?;
    Ok(())
}
