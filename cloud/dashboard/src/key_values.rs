//! Names with values that belong to something: variables of services, settings of devices, tags. All of them have the
//! same editor, whoever owns them.
//!
//! A page lists the existing pairs ([`list`]), shows them as a live part ([`KeyValueTable`]), and lets people add to
//! them ([`AddForm`]); their forms are handled here, and passed on to the data API unchanged.

mod kind;
mod table;
mod variables;

use axum::extract::Path;
use axum::routing::post;
use data::write::Verb;
use maud::Markup;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::data::literal;
use super::form::Form;
use super::live::LiveFragment;
use super::page_error::{PageError, PageResult};
use super::rows::Id;
use super::session_user::{SessionUser, local};
use super::state::Routes;

pub(crate) use kind::{KeyValue, KeyValueKind};
use table::{AddForm, KeyValueTable, section};
pub(crate) use table::{Inheritance, KeyValueRow};
pub(crate) use variables::{NewOwners, VariablesEditor};

/// The maximum number of pairs of one owner that are shown.
const MOST: usize = 1000;

pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/pairs", post(add))
        .route("/pairs/{resource}/{id}", post(change))
}

/// Returns the pairs of a kind with this owner, sorted by name, as the user sees them.
///
/// # Errors
/// If the API refuses the request, or the database fails.
pub(crate) async fn list(
    user: &SessionUser,
    kind: KeyValueKind,
    owner: i64,
) -> PageResult<Vec<KeyValue>> {
    let query = format!(
        "$select={}&$filter={} eq {owner}&$orderby={} asc&$top={MOST}",
        kind.fields(),
        kind.link(),
        kind.name()
    );
    user.rows(&format!("/{}", kind.resource()), &query).await
}

/// A variable of a service, on every device of its fleet.
#[derive(Deserialize)]
pub(crate) struct ServiceKeyValue {
    pub(crate) service: Id,
    #[serde(flatten)]
    pub(crate) pair: KeyValue,
}

/// Returns the variables of a fleet's services, sorted by name, as the user sees them.
///
/// # Errors
/// As [`list`].
pub(crate) async fn load_service_variables(
    user: &SessionUser,
    fleet: i64,
) -> PageResult<Vec<ServiceKeyValue>> {
    let resource = KeyValueKind::ServiceVariable.resource();
    let query = format!(
        "$select=id,name,value,is_secret,service&$filter=service/any(s:s/application eq {fleet})\
         &$orderby=name asc&$top={MOST}"
    );
    user.rows(&format!("/{resource}"), &query).await
}

/// Returns the tags of a kind with this owner, on the page at `back`, as a live part.
///
/// # Errors
/// As [`list`].
pub(crate) async fn tags(
    user: &SessionUser,
    kind: KeyValueKind,
    owner: i64,
    back: &str,
) -> PageResult<LiveFragment> {
    let tags = list(user, kind, owner).await?;
    let table = KeyValueTable {
        part: "tags",
        caption: "Tags",
        empty: "No tags.",
        back,
        rows: KeyValueRow::own(kind, tags).collect(),
    };
    Ok(table.fragment())
}

/// The section of a page with its tags ([`tags`]), and the form that adds to them if the user may do so.
pub(crate) fn tags_section(
    tags: &LiveFragment,
    may_change: bool,
    kind: KeyValueKind,
    owner: i64,
    back: &str,
) -> Markup {
    let add = AddForm::new(back, kind, owner, "");
    section("Tags", None, tags, may_change.then_some(&add))
}

/// Sets a pair to this value, whether it existed or not.
///
/// # Errors
/// If the API refuses the request, or the database fails.
pub(crate) async fn set(
    user: &SessionUser,
    kind: KeyValueKind,
    owner: i64,
    name: &str,
    value: &str,
) -> PageResult<()> {
    let path = format!(
        "/{}({}={owner},{}={})",
        kind.resource(),
        kind.link(),
        kind.name(),
        literal(name)
    );
    let body = json!({ "value": value });
    user.change(Verb::Put, &path, "", body).await?;
    Ok(())
}

/// Returns the path of a pair's row on the API.
fn path(kind: KeyValueKind, id: i64) -> String {
    format!("/{}({id})", kind.resource())
}

/// Removes a pair.
///
/// # Errors
/// 404 if there is none that the user may remove; if the database fails.
pub(crate) async fn remove(user: &SessionUser, kind: KeyValueKind, id: i64) -> PageResult<()> {
    user.delete(&path(kind, id)).await
}

/// `POST /dashboard/pairs`: `to` is the resource and the owner, `back` the page without a script.
async fn add(user: SessionUser, form: Form) -> PageResult {
    let to = form.text("to").split_once(' ');
    let to = to.and_then(|(resource, owner)| Some((resource, owner.parse::<i64>().ok()?)));
    let (resource, owner) =
        to.ok_or_else(|| PageError::wrong("Choose the service, or all services."))?;
    let kind = KeyValueKind::named(resource)?;
    let name = form.text("name");
    if name.is_empty() {
        return Err(PageError::wrong("Enter a name."));
    }
    let mut body = Map::from_iter([
        (kind.link().to_owned(), json!(owner)),
        (kind.name().to_owned(), json!(name)),
        ("value".to_owned(), json!(form.exact("value"))),
    ]);
    if form.has("secret") && kind.may_be_secret() {
        body.insert("is_secret".to_owned(), json!(true));
    }
    let path = format!("/{resource}");
    user.create(&path, Value::Object(body)).await?;
    Ok(user.done(&format!("Added {name}."), back(&form)))
}

/// `POST /dashboard/pairs/<resource>/<id>`: another `value`, perhaps `secret` from now on, or `delete`.
async fn change(
    user: SessionUser,
    Path((resource, id)): Path<(String, i64)>,
    form: Form,
) -> PageResult {
    let kind = KeyValueKind::named(&resource)?;
    if form.has("delete") {
        remove(&user, kind, id).await?;
        return Ok(user.done("Deleted.", back(&form)));
    }
    let mut body = json!({ "value": form.exact("value") });
    // Without the tick it stays as it was.
    if form.has("secret") && kind.may_be_secret() {
        body["is_secret"] = json!(true);
    }
    user.patch(&path(kind, id), body).await?;
    Ok(user.done("Saved.", back(&form)))
}

/// The page that a form was on.
pub(super) fn back(form: &Form) -> &str {
    local(form.text("back")).unwrap_or("/dashboard")
}
