//! A statement in words, for the person who is about to sign it.

use std::fmt::Write as _;

use jiff::Timestamp;
use signed_targets::{SignedService, Statement};

/// Describes everything that is signed. Long values are replaced by digests; images are shown with their full digests.
pub(super) fn in_words(statement: &Statement, fleet: &str, release: &str) -> String {
    let mut text = format!(
        "the release {release} of {fleet}, version {}, {}\n",
        statement.version,
        match statement.expires_ms {
            Some(expires) => format!("to be accepted until {}", time(expires)),
            None => "without a time limit".to_owned(),
        }
    );
    for (name, service) in &statement.services {
        write_service(&mut text, name, service);
    }
    list(&mut text, "  volumes", statement.volumes.keys());
    list(&mut text, "  networks", statement.networks.keys());
    let settings = statement.settings.iter();
    let settings: Vec<String> = settings
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    list(&mut text, "  settings", settings.iter());
    list(
        &mut text,
        "  settings whose values the cloud chooses",
        statement.open_settings.iter(),
    );
    text.trim_end().to_owned()
}

fn write_service(text: &mut String, name: &str, service: &SignedService) {
    // Writing into a string does not fail.
    let _ = writeln!(text, "  service {name}: {}", service.image);
    list(text, "    compose fields", service.compose.keys());
    let labels = service.labels.iter();
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    list(text, "    labels", labels.iter());
    list(
        text,
        "    variables whose values the cloud chooses",
        service.variables.iter(),
    );
}

fn list<'a>(text: &mut String, what: &str, names: impl Iterator<Item = &'a String>) {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if !names.is_empty() {
        let _ = writeln!(text, "{what}: {}", names.join(", "));
    }
}

/// Formats a time in milliseconds since the epoch for people.
pub(super) fn time(ms: u64) -> String {
    let time = i64::try_from(ms).map(Timestamp::from_millisecond);
    match time {
        Ok(Ok(time)) => time.to_string(),
        _ => format!("{ms} ms after 1970"),
    }
}
