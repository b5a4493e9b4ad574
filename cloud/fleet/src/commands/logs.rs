//! `logs`: past and new output of a device's services.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde::{Deserialize, Serialize};

use crate::arguments::Logs;
use crate::cloud::Cloud;
use crate::failure::{Failure, Kind, Result};
use crate::find::{self, Device};
use crate::output::{Output, printable};

/// The maximum number of past lines that the cloud returns.
const MOST: u32 = 1000;
/// The maximum length in bytes of a line in the stream; longer ones are not log lines.
const LONGEST: usize = 1 << 20;
/// The time without data after which the connection counts as lost; the cloud sends something every
/// 58 s.
const SILENCE: Duration = Duration::from_secs(150);
/// The pause before a lost connection is opened again.
const AGAIN: Duration = Duration::from_secs(2);

/// A line as the cloud sends it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    message: String,
    timestamp: i64,
    #[serde(default)]
    created_at: Option<i64>,
    #[serde(default)]
    is_system: bool,
    #[serde(default)]
    is_std_err: bool,
    #[serde(default)]
    service_id: Option<i64>,
}

/// A line as it is printed.
#[derive(Serialize)]
struct Line<'a> {
    timestamp: i64,
    service: Option<&'a str>,
    message: &'a str,
    system: bool,
    stderr: bool,
}

/// Prints lines of the selected services.
struct Printer<'a> {
    output: &'a Output,
    names: HashMap<i64, String>,
    services: Vec<i64>,
    /// When the cloud received the newest printed line.
    newest: Option<i64>,
    /// All lines of that moment: the stream of a new connection begins with them.
    of_newest: Vec<(i64, i64, String)>,
    /// The lines among them that are still to be skipped.
    again: HashSet<(i64, i64, String)>,
}

impl Printer<'_> {
    fn print(&mut self, entry: &Entry) {
        let at = entry.created_at.unwrap_or(entry.timestamp);
        let line = (at, entry.timestamp, entry.message.clone());
        if self.again.remove(&line) {
            return;
        }
        if self.newest < Some(at) {
            self.newest = Some(at);
            self.of_newest.clear();
        }
        // The cloud repeats at most this many of them.
        if self.newest == Some(at) && self.of_newest.len() < MOST as usize {
            self.of_newest.push(line);
        }
        let is_selected = match entry.service_id {
            _ if self.services.is_empty() => true,
            Some(id) => self.services.contains(&id),
            None => false,
        };
        if !is_selected {
            return;
        }
        let service = entry
            .service_id
            .and_then(|id| self.names.get(&id))
            .map(String::as_str);
        if self.output.json {
            return self.output.value_in_line(&Line {
                timestamp: entry.timestamp,
                service,
                message: &entry.message,
                system: entry.is_system,
                stderr: entry.is_std_err,
            });
        }
        let time = jiff::Timestamp::from_millisecond(entry.timestamp)
            .map(|time| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
            .unwrap_or_default();
        let from = match (service, entry.is_system) {
            (Some(service), _) => service,
            (None, true) => "supervisor",
            (None, false) => "-",
        };
        let message = entry.message.trim_end_matches(['\n', '\r']);
        self.output
            .text(format!("{time} {from}: {}", printable(message)));
    }
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, logs: Logs) -> Result<()> {
    let device = find::device(cloud, &logs.device).await?;
    let names = services(cloud, &device).await?;
    let mut services = Vec::new();
    for name in &logs.service {
        match names.iter().find(|(_, known)| *known == name) {
            Some((id, _)) => services.push(*id),
            // This error lists the existing ones.
            None => services.push(find::service(cloud, device.fleet()?, name).await?),
        }
    }
    let mut printer = Printer {
        output,
        names,
        services,
        newest: None,
        of_newest: Vec::new(),
        again: HashSet::new(),
    };
    // With only some services selected, lines of others do not count.
    let count = if printer.services.is_empty() {
        logs.tail.min(MOST)
    } else {
        MOST
    };
    if logs.follow {
        follow(cloud, &device, &mut printer, count).await
    } else {
        history(cloud, &device, &mut printer, count, logs.tail).await
    }
}

async fn history(
    cloud: &Cloud,
    device: &Device,
    printer: &mut Printer<'_>,
    count: u32,
    tail: u32,
) -> Result<()> {
    let path = format!("/device/v2/{}/logs?count={count}", device.uuid);
    let mut entries: Vec<Entry> = cloud.get(&path).await?;
    if !printer.services.is_empty() {
        entries.retain(|entry| {
            entry
                .service_id
                .is_some_and(|id| printer.services.contains(&id))
        });
    }
    let skipped = entries.len().saturating_sub(tail as usize);
    for entry in entries.iter().skip(skipped) {
        printer.print(entry);
    }
    if entries.is_empty() {
        printer.output.note("there are no log lines");
    }
    Ok(())
}

/// Prints lines until Ctrl-C: a lost connection is opened again, and continues at the same place.
async fn follow(
    cloud: &Cloud,
    device: &Device,
    printer: &mut Printer<'_>,
    count: u32,
) -> Result<()> {
    let mut connected = false;
    loop {
        let from = match printer.newest {
            None => format!("count={count}"),
            Some(newest) => format!("count={MOST}&start={newest}"),
        };
        let path = format!("/device/v2/{}/logs?stream=1&{from}", device.uuid);
        printer.again = printer.of_newest.iter().cloned().collect();
        let lost = match cloud.send(Method::GET, &path, None, None).await {
            Ok(answer) if answer.status() == StatusCode::OK => {
                connected = true;
                lines(answer, printer).await
            }
            Ok(answer) => {
                let status = answer.status();
                let refusal = cloud.refused(answer).await?;
                if status.is_server_error() && connected {
                    refusal
                } else {
                    return Err(refusal);
                }
            }
            Err(failure) if connected && failure.kind == Kind::Failed => failure,
            Err(failure) => return Err(failure),
        };
        printer.output.note(format!("({lost}; reconnecting)"));
        tokio::time::sleep(AGAIN).await;
    }
}

/// Prints the lines of a stream until it ends, and returns the reason.
async fn lines(mut answer: Response, printer: &mut Printer<'_>) -> Failure {
    let mut text = Vec::new();
    loop {
        let piece = match tokio::time::timeout(SILENCE, answer.chunk()).await {
            Ok(Ok(Some(piece))) => piece,
            Ok(Ok(None)) => return Failure::failed("the cloud ended the stream"),
            Ok(Err(error)) => return Failure::failed(format!("the stream broke: {error}")),
            Err(_) => return Failure::failed("the cloud no longer responds"),
        };
        text.extend_from_slice(&piece);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let rest = text.split_off(end + 1);
            // A blank line only keeps the connection alive; unreadable lines are skipped.
            if let Ok(entry) = serde_json::from_slice::<Entry>(&text) {
                printer.print(&entry);
            }
            text = rest;
        }
        if text.len() > LONGEST {
            return Failure::failed("the stream is not a log");
        }
    }
}

/// Returns the names of the services that a device may have lines of.
async fn services(cloud: &Cloud, device: &Device) -> Result<HashMap<i64, String>> {
    let Some(fleet) = device.fleet else {
        return Ok(HashMap::new());
    };
    let services = find::services(cloud, fleet.id).await?.into_iter();
    Ok(services.map(|it| (it.id, it.service_name)).collect())
}
