//! Who did what to which row, from where and when (`audit_event`): written in the transaction of the change itself,
//! so there is neither a change without its event nor an event without its change.
//!
//! People, their keys and provisioning keys are noted. What devices report of themselves is not, nor what the cloud
//! does by itself. Who asks is known to the task that serves the request: what the cloud does on the way, in its own
//! name, is noted as done by whoever asked for it.

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

/// Characters of a value that are kept.
const LONGEST: usize = 200;
/// Bytes of all values together.
const MOST: usize = 8000;
/// In place of a value that is not kept.
const HIDDEN: &str = "…";
/// Resources whose changes follow from others, or are noted in other words.
const UNTOLD: [&str; 5] = [
    "actor",
    "audit_event",
    "device_history",
    "image_install",
    "user_session",
];
/// Events that are deleted in one transaction: others write in between.
const AT_ONCE: i64 = 5000;

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// What the credential makes of its holder.
    pub role: Role,
    /// The actor that it stands for.
    pub actor: Option<i64>,
    /// The user, where the actor is one.
    pub user: Option<i64>,
    /// What it is: `session` or `key`.
    pub credential: &'static str,
    /// The row of the session or key.
    pub credential_id: Option<i64>,
}

/// A request, as far as events tell of it.
#[derive(Debug)]
struct Source {
    address: Option<IpAddr>,
    author: OnceLock<Author>,
}

tokio::task_local! {
    static SOURCE: Arc<Source>;
}

/// Has what `request` changes noted as coming from this address.
pub async fn from_address<F: Future>(address: Option<IpAddr>, request: F) -> F::Output {
    let source = Source {
        address,
        author: OnceLock::new(),
    };
    SOURCE.scope(Arc::new(source), request).await
}

/// The request that this task serves is made by this one. The first one stays.
pub fn made_by(author: Author) {
    let _ = SOURCE.try_with(|source| source.author.set(author));
}

/// What is told of one or more rows.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// What was done: `create`, `change`, `delete`, or a word of its own.
    pub verb: &'static str,
    /// The resource of the rows.
    pub resource: &'static str,
    /// The rows.
    pub ids: &'a [i64],
    /// JSON of what was said of them, without secrets.
    pub fields: Option<&'a str>,
}

/// Notes an event of these rows, which are there, by whoever makes the request, or by this author.
///
/// # Errors
/// Why the statement failed.
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

/// The same in a transaction of its own.
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

/// Who is noted for what the request that this task serves changes, and from which address: the author, where one is
/// given, or whoever makes the request. Nobody where their doings are not noted.
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

/// The statement that notes events of rows of a resource.
fn insert(resource: &str) -> String {
    let organization = organization(resource);
    format!(
        "INSERT INTO audit_event (created_at, modified_at, verb, resource, actor, is_by__user, user_name, \
         credential, credential_id, address, fields, times, row_id, belongs_to__organization) \
         SELECT ?, ?, ?, ?, ?, ?, (SELECT username FROM \"user\" WHERE id = ?), ?, ?, ?, ?, 1, t.id, \
         {organization} FROM \"{resource}\" AS t WHERE t.id IN (?)"
    )
}

/// The organization whose administrators are told of a row `t`: the one that it is of.
fn organization(resource: &str) -> String {
    let first = match resource {
        "organization" => return "t.id".to_owned(),
        "api_key" => return organization_of_key(),
        // What says who is in something does not belong there as other rows do: it never leads elsewhere.
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

/// The same of a key, which is of the actor of a fleet or device where it is not a user's.
fn organization_of_key() -> String {
    "coalesce((SELECT a.organization FROM application AS a WHERE a.actor = t.is_of__actor), \
     (SELECT a.organization FROM application AS a JOIN device AS d ON d.belongs_to__application = a.id \
     WHERE d.actor = t.is_of__actor))"
        .to_owned()
}

/// What is kept of values that were written.
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
    /// Notes what is done with rows, where it is somebody's doing.
    pub(crate) async fn audit(
        &mut self,
        verb: &'static str,
        resource: &'static Resource,
        ids: &[i64],
        values: &Record,
    ) -> Result<(), DataError> {
        if UNTOLD.contains(&resource.name) || ids.is_empty() {
            return Ok(());
        }
        let caller = self.context.caller;
        // A task that serves no request knows the caller alone.
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
        // Devices write most, and are not noted: nothing is made of what they wrote.
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

/// Counts a sign-in that failed for its account: one event for each hour.
///
/// # Errors
/// Why a statement failed.
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

/// Deletes the oldest events: those from before a moment (milliseconds), and those that are too many.
///
/// # Errors
/// Why a statement failed.
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
