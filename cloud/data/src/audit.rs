//! Who did what to which row, from where and when (`audit_event`): written in the transaction of the change itself, so
//! there is neither a change without its event nor an event without its change.
//!
//! Actions of people, of their keys and of provisioning keys are recorded. Reports of devices and the cloud's own
//! actions are not. The author of a request is known to the task that serves it: actions of the cloud on the author's
//! behalf are attributed to the author.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use resources::{Resource, Role, StoredValue};
use serde_json::{Map, Value};

use crate::database::Database;
use crate::error::DataError;
use crate::owner;
use crate::record::Record;
use crate::statement::{Sql, sql};
use crate::transaction::Transaction;
use crate::write::Writer;

/// The maximum number of characters recorded of a value.
const LONGEST: usize = 200;
/// The maximum number of bytes of all values together.
const MOST: usize = 8000;
/// Replaces a value that is not recorded.
const HIDDEN: &str = "…";
/// Resources whose changes follow from others, or are recorded under other verbs.
const UNRECORDED: [&str; 5] = [
    "actor",
    "audit_event",
    "device_history",
    "image_install",
    "user_session",
];
/// Events that are deleted in one transaction: others can write in between.
const AT_ONCE: i64 = 5000;

/// The author of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The role of the credential.
    pub role: Role,
    /// The actor of the credential.
    pub actor: Option<i64>,
    /// The user, if the actor is one.
    pub user: Option<i64>,
    /// The kind of credential: `session` or `key`.
    pub credential: &'static str,
    /// The row of the session or key.
    pub credential_id: Option<i64>,
}

/// The part of a request that events contain.
#[derive(Debug)]
struct Source {
    address: Option<IpAddr>,
    author: OnceLock<Author>,
}

tokio::task_local! {
    static SOURCE: Arc<Source>;
}

/// Runs `request` so that its changes are recorded with this address.
pub async fn from_address<F: Future>(address: Option<IpAddr>, request: F) -> F::Output {
    let source = Source {
        address,
        author: OnceLock::new(),
    };
    SOURCE.scope(Arc::new(source), request).await
}

/// Sets the author of the request that this task serves. Only the first call counts.
pub fn made_by(author: Author) {
    let _ = SOURCE.try_with(|source| source.author.set(author));
}

/// An event of one or more rows.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The action: `create`, `change`, `delete`, or another word.
    pub verb: &'static str,
    /// The resource of the rows.
    pub resource: &'static str,
    /// The rows.
    pub ids: &'a [i64],
    /// JSON of the written values, without secrets.
    pub fields: Option<&'a str>,
}

/// Records an event of existing rows, for this author or that of the request.
///
/// # Errors
/// If the statement fails.
pub async fn note(
    transaction: &mut Transaction,
    author: Option<&Author>,
    event: Event<'_>,
    now: i64,
) -> Result<(), DataError> {
    if let Some(statement) = statement(author, event, now) {
        transaction.execute(&statement).await?;
    }
    Ok(())
}

/// Like [`note`], in its own transaction.
///
/// # Errors
/// As [`note`].
pub async fn note_alone(
    database: &Database,
    author: Option<&Author>,
    event: Event<'_>,
    now: i64,
) -> Result<(), DataError> {
    if let Some(statement) = statement(author, event, now) {
        database.execute(&statement).await?;
    }
    Ok(())
}

/// Returns the author and address to record for changes of the current task's request: the given author, otherwise that
/// of the request. `None` if actions of that role are not recorded.
fn noted(author: Option<&Author>) -> Option<(Author, Option<IpAddr>)> {
    let (address, of_request) = SOURCE
        .try_with(|source| (source.address, source.author.get().cloned()))
        .unwrap_or_default();
    let author = author.cloned().or(of_request)?;
    let is_noted = matches!(
        author.role,
        Role::User | Role::UserKey | Role::ProvisioningKey
    );
    is_noted.then_some((author, address))
}

fn statement(author: Option<&Author>, event: Event<'_>, now: i64) -> Option<Sql> {
    let (author, address) = noted(author)?;
    let address = address.map(|address| address.to_canonical().to_string());
    let statement = sql(insert(event.resource))
        .with(now)
        .with(now)
        .with(event.verb)
        .with(event.resource)
        .with(author.actor)
        .with(author.user)
        .with(author.user)
        .with(author.credential)
        .with(author.credential_id)
        .with(address)
        .with(event.fields.map(str::to_owned));
    Some(statement.with_all(event.ids))
}

/// Returns the statement that records events of rows of a resource.
fn insert(resource: &str) -> String {
    let organization = organization(resource);
    format!(
        "INSERT INTO audit_event (created_at, modified_at, verb, resource, actor, is_by__user, user_name, \
         credential, credential_id, address, fields, times, row_id, belongs_to__organization) \
         SELECT ?, ?, ?, ?, ?, ?, (SELECT username FROM \"user\" WHERE id = ?), ?, ?, ?, ?, 1, t.id, \
         {organization} FROM \"{resource}\" AS t WHERE t.id IN (?)"
    )
}

/// Returns the organization of a row `t`, whose administrators can see the event.
fn organization(resource: &str) -> String {
    let first = match resource {
        "organization" => return "t.id".to_owned(),
        "api_key" => return organization_of_key(),
        // The owning link of a membership or share is not declared as such, because it never changes.
        "organization_membership" => Some("is_member_of__organization"),
        "organization_invite" => Some("is_invited_to__organization"),
        "team_membership" => Some("is_member_of__team"),
        "team_application_access" => Some("grants_access_to__application"),
        "user_application_membership" => Some("is_member_of__application"),
        "application_invite" => Some("is_invited_to__application"),
        _ => None,
    };
    match owner::links_to_organization(resource, first).as_deref() {
        Some([first, rest @ ..]) => {
            owner::organization_of(rest, &format!("t.\"{}\"", first.column))
        }
        _ => "CAST(NULL AS BIGINT)".to_owned(),
    }
}

/// Returns the organization of a key, which belongs to the actor of a fleet or device unless it is a user's.
fn organization_of_key() -> String {
    "coalesce((SELECT a.organization FROM application AS a WHERE a.actor = t.is_of__actor), \
     (SELECT a.organization FROM application AS a JOIN device AS d ON d.belongs_to__application = a.id \
     WHERE d.actor = t.is_of__actor))"
        .to_owned()
}

/// Returns the recorded form of written values.
fn recorded_values(resource: &Resource, values: &Record) -> Option<String> {
    let is_variable = resource.name.ends_with("_variable");
    let mut recorded_values = Map::new();
    for (name, value) in values.iter() {
        let secret = resource.find_field(name).is_none_or(|field| field.secret)
            || (is_variable && name == "value")
            || name == "invitation_token";
        let value = match value {
            _ if secret => Value::from(HIDDEN),
            StoredValue::Null => Value::Null,
            StoredValue::Integer(number) => (*number).into(),
            StoredValue::Boolean(flag) => (*flag).into(),
            StoredValue::Text(text) if text.chars().count() > LONGEST => {
                let begin: String = text.chars().take(LONGEST).collect();
                format!("{begin}{HIDDEN}").into()
            }
            StoredValue::Text(text) => text.as_str().into(),
        };
        recorded_values.insert(name.to_owned(), value);
    }
    if recorded_values.is_empty() {
        return None;
    }
    let text = Value::Object(recorded_values).to_string();
    if text.len() <= MOST {
        return Some(text);
    }
    let names = values
        .iter()
        .map(|(name, _)| (name.to_owned(), HIDDEN.into()));
    Some(Value::Object(names.collect()).to_string())
}

impl Writer<'_> {
    /// Records an action on rows, if it has an author.
    pub(crate) async fn audit(
        &mut self,
        verb: &'static str,
        resource: &'static Resource,
        ids: &[i64],
        values: &Record,
    ) -> Result<(), DataError> {
        if UNRECORDED.contains(&resource.name) || ids.is_empty() {
            return Ok(());
        }
        let caller = self.context.caller;
        // A task that serves no request knows only the caller.
        let of_caller = caller.role().map(|role| Author {
            role,
            actor: caller.actor(),
            user: caller.user(),
            credential: match role {
                Role::User => "session",
                _ => "key",
            },
            credential_id: None,
        });
        let of_request = SOURCE.try_with(|source| source.author.get().is_some());
        let author = of_caller.filter(|_| !of_request.unwrap_or(false));
        // Devices write most and are not recorded, so their values are not even formatted.
        if noted(author.as_ref()).is_none() {
            return Ok(());
        }
        let fields = recorded_values(resource, values);
        for ids in ids.chunks(crate::statement::AT_ONCE) {
            let event = Event {
                verb,
                resource: resource.name,
                ids,
                fields: fields.as_deref(),
            };
            let now = self.now();
            note(self.transaction, author.as_ref(), event, now).await?;
        }
        Ok(())
    }
}

/// Counts a failed sign-in for its account: one event per hour.
///
/// # Errors
/// If a statement fails.
pub async fn note_failed_sign_in(
    database: &Database,
    user: i64,
    address: &str,
    now: i64,
) -> Result<(), DataError> {
    let hour = now - 60 * 60 * 1000;
    let again = sql(
        "UPDATE audit_event SET times = times + 1, modified_at = ?, address = ? WHERE id = (SELECT id \
         FROM audit_event WHERE is_by__user = ? AND verb = 'sign-in-failed' AND created_at > ? \
         ORDER BY id DESC LIMIT 1)",
    );
    let again = again.with(now).with(address).with(user).with(hour);
    if database.execute(&again).await? > 0 {
        return Ok(());
    }
    let first = sql(
        "INSERT INTO audit_event (created_at, modified_at, verb, resource, actor, is_by__user, user_name, \
         address, times, row_id) SELECT ?, ?, 'sign-in-failed', 'user', u.actor, u.id, u.username, ?, 1, u.id \
         FROM \"user\" AS u WHERE u.id = ?",
    );
    let first = first.with(now).with(now).with(address).with(user);
    database.execute(&first).await?;
    Ok(())
}

/// Deletes the oldest events: those before a given time (milliseconds), and those that exceed the maximum number.
///
/// # Errors
/// If a statement fails.
pub async fn tidy(database: &Database, before: i64, most: i64) -> Result<(), DataError> {
    loop {
        let old = sql(
            "DELETE FROM audit_event WHERE id IN (SELECT id FROM audit_event ORDER BY id LIMIT ?) \
             AND (created_at < ? OR id <= (SELECT MAX(id) FROM audit_event) - ?)",
        );
        let deleted = database
            .execute(&old.with(AT_ONCE).with(before).with(most))
            .await?;
        if deleted < u64::try_from(AT_ONCE).unwrap_or(u64::MAX) {
            return Ok(());
        }
    }
}
