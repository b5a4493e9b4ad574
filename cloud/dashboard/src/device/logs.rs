//! A device's log: the stored lines, and new ones as they are written.

use std::collections::HashMap;
use std::time::Duration;

use axum::response::IntoResponse;
use axum::response::sse::Event;
use cloud_core::logs::line::LogLine;
use cloud_core::logs::tail;
use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use http::header;
use jiff::Timestamp;
use maud::{Markup, html};
use tokio::time::sleep;

use super::tabs::{Device, Uuid};
use crate::page_error::PageResult;
use crate::rows::ServiceName;
use crate::session_user::SessionUser;

/// The number of lines that a page keeps.
const MOST: usize = 1000;
/// The time between two batches of lines: lines that arrive faster are sent together.
const REST: Duration = Duration::from_millis(200);

/// The names of services by their numbers, which log lines contain.
struct Names(HashMap<i64, String>);

impl Names {
    async fn load(user: &SessionUser, device: &Device) -> PageResult<Self> {
        let Some(fleet) = device.fleet() else {
            return Ok(Names(HashMap::new()));
        };
        let query = format!(
            "$select=id,service_name&$filter=application eq {fleet}&$orderby=service_name asc&$top=1000"
        );
        let services: Vec<ServiceName> = user.rows("/service", &query).await?;
        let names = services.into_iter().map(|it| (it.id, it.service_name));
        Ok(Names(names.collect()))
    }

    /// Looks up names that are not known yet: a new release may add a service, and a move brings those of another
    /// fleet.
    async fn learn(&mut self, user: &SessionUser, lines: &[LogLine]) {
        let unknown = lines.iter().filter_map(|line| line.service);
        let mut unknown: Vec<i64> = unknown.filter(|id| !self.0.contains_key(id)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        for id in unknown {
            let path = format!("/service({id})");
            let service: PageResult<ServiceName> = user.row(&path, "$select=id,service_name").await;
            let name = service.map_or_else(|_| format!("service {id}"), |it| it.service_name);
            self.0.insert(id, name);
        }
    }

    fn name<'a>(&'a self, line: &LogLine) -> &'a str {
        match line.service {
            Some(id) => self.0.get(&id).map_or("", String::as_str),
            None => "device",
        }
    }

    /// Returns all names, sorted.
    fn all(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.0.values().map(String::as_str).collect();
        all.sort_unstable();
        all
    }
}

/// The log on its page with the existing lines; a script adds new ones.
pub(super) async fn panel(user: &SessionUser, device: &Device) -> PageResult<Markup> {
    let mut names = Names::load(user, device).await?;
    // If the message bus is unavailable, the rest of the page still works.
    let right = device.right_to_read(user).await?;
    let (lines, unread) = match tail::latest(&user.cloud, &right).await {
        Ok(lines) => (lines, false),
        Err(error) => {
            tracing::warn!(device = %device.uuid, %error, "log lines cannot be read");
            (Vec::new(), true)
        }
    };
    names.learn(user, &lines).await;
    Ok(html! {
        section.stack aria-labelledby="log" data-log {
            div.head {
                h2 id="log" { "Log" }
                a.button.small href={ (device.place()) "/log.txt" } download { "Download" span.hidden { " the log" } }
            }
            div.filters data-log-controls hidden {
                label { span.hidden { "Only lines containing" }
                    input type="search" data-log-text placeholder="Only lines containing …" maxlength="200" spellcheck="false";
                }
                label { span.hidden { "Service" }
                    select data-log-service {
                        option value="" { "All services" }
                        option value="device" { "The device itself" }
                        @for name in names.all() { option value=(name) { (name) } }
                    }
                }
                button type="button" data-log-pause aria-pressed="false" { "Pause" }
                span.faint role="status" data-log-waiting {}
            }
            @if unread {
                p.notice.wary role="status" data-log-unread {
                    "The log cannot be read at the moment. No lines are lost: they appear here as soon as possible."
                }
            }
            div.log role="log" aria-live="off" aria-label="Log lines" tabindex="0"
                data-lines=(MOST) data-event="lines" {
                @for line in &lines { (drawn(line, &names)) }
            }
        }
    })
}

/// Returns the lines as events of an open page: `lines-reset` replaces those on the page, `lines` is added.
///
/// # Errors
/// If the database fails.
pub(super) async fn events(
    user: &SessionUser,
    device: &Device,
) -> PageResult<BoxStream<'static, Event>> {
    let names = Names::load(user, device).await?;
    let right = device.right_to_read(user).await?;
    let live = tail::followed(&user.cloud, &right).await?;
    let state = (user.clone(), names, live, true);
    let events = stream::unfold(state, |(user, mut names, mut live, first)| async move {
        if !first {
            sleep(REST).await;
        }
        let mut lines = live.next().await?;
        while lines.is_empty() && !first {
            lines = live.next().await?;
        }
        names.learn(&user, &lines).await;
        let skipped = lines.len().saturating_sub(MOST);
        let text: String = lines
            .iter()
            .skip(skipped)
            .map(|line| drawn(line, &names).into_string())
            .collect();
        let name = if first { "lines-reset" } else { "lines" };
        let event = Event::default().event(name).data(text);
        Some((event, (user, names, live, false)))
    });
    Ok(events.boxed())
}

fn drawn(line: &LogLine, names: &Names) -> Markup {
    let service = names.name(line);
    html! {
        div.entry.err[line.is_std_err].system[line.is_system] data-service=(service) {
            span.at title=(at(line)) { (clock(line)) } " "
            span.service { (service) } " "
            span.message { (readable(&line.message)) }
        }
    }
}

fn at(line: &LogLine) -> String {
    let time = Timestamp::from_millisecond(line.timestamp);
    time.map_or_else(|_| line.timestamp.to_string(), |time| format!("{time:.3}"))
}

/// The time of day, in UTC.
fn clock(line: &LogLine) -> String {
    at(line).get(11..19).unwrap_or_default().to_owned()
}

/// Returns the message without terminal sequences (colours, carriage returns) and characters that would break out of
/// its line.
fn readable(message: &str) -> String {
    let mut plain = String::with_capacity(message.len());
    let mut letters = message.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => {
                // `ESC [ … letter`, or `ESC letter`.
                if letters.next() == Some('[') {
                    letters.by_ref().find(|it| ('@'..='~').contains(it));
                }
            }
            '\n' | '\r' | '\t' => plain.push(' '),
            // Marks that change the writing direction would also affect the rest of the page.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            letter if letter.is_control() => {}
            letter => plain.push(letter),
        }
    }
    plain
}

/// `GET /dashboard/devices/<uuid>/log.txt`
pub(super) async fn download(user: SessionUser, uuid: Uuid) -> PageResult {
    let device = Device::find(&user, &uuid).await?;
    let mut names = Names::load(&user, &device).await?;
    let right = device.right_to_read(&user).await?;
    let lines = tail::latest(&user.cloud, &right).await?;
    names.learn(&user, &lines).await;
    let mut text = String::new();
    for line in &lines {
        let message = readable(&line.message);
        text.push_str(&format!("{} {} {message}\n", at(line), names.name(line)));
    }
    let name = format!("attachment; filename=\"{}.log.txt\"", device.uuid);
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_without_what_is_for_terminals() {
        for (message, text) in [
            ("plain", "plain"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[1;38;5;2mgreen\u{1b}[K!", "green!"),
            ("a\tb\r\nc", "a b  c"),
            ("\u{1b}", ""),
            ("\u{1b}[31", ""),
            ("\u{202e}desrever\u{0}\u{7}", "desrever"),
            ("<b>", "<b>"),
        ] {
            assert_eq!(readable(message), text, "{message:?}");
        }
    }
}
