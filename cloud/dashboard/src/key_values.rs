//! Names with values that belong to something: variables of services, settings of devices, tags. One editor for
//! all of them, whoever's they are.
//!
//! A page lists what there is ([`pairs`]), shows it as a part that follows ([`Table`]), and lets people add to it
//! ([`AddForm`]); their forms come here, and are told to the data API as they are.

mod table;

use axum::Router;
use axum::extract::Path;
use axum::routing::post;
use data::write::Verb;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::data::{Id, literal};
use super::form::Form;
use super::live::LiveFragment;
use super::problem::{PageError, PageResult};
use super::state::DashboardState;
use super::visitor::{SessionUser, local};

pub(crate) use table::{AddForm, Inheritance, KeyValueRow, KeyValueTable};

/// Pairs of one owner that are shown.
const MOST: usize = 1000;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/pairs", post(add))
        .route("/pairs/{resource}/{id}", post(change))
}

/// Which names with values, and whose. The number that goes with it is its owner's: of the fleet, the service of
/// the fleet, the device, the service on a device (`service_install`) or the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyValueKind {
    FleetVariable,
    FleetSetting,
    FleetTag,
    /// Of a service, on every device of its fleet.
    ServiceVariable,
    DeviceVariable,
    DeviceSetting,
    DeviceTag,
    /// Of a service, on one device.
    DeviceServiceVariable,
    ReleaseTag,
}

impl KeyValueKind {
    const ALL: [KeyValueKind; 9] = [
        KeyValueKind::FleetVariable,
        KeyValueKind::FleetSetting,
        KeyValueKind::FleetTag,
        KeyValueKind::ServiceVariable,
        KeyValueKind::DeviceVariable,
        KeyValueKind::DeviceSetting,
        KeyValueKind::DeviceTag,
        KeyValueKind::DeviceServiceVariable,
        KeyValueKind::ReleaseTag,
    ];

    /// The resource, and its link to whose it is.
    pub(super) const fn resource(self) -> (&'static str, &'static str) {
        match self {
            KeyValueKind::FleetVariable => ("application_environment_variable", "application"),
            KeyValueKind::FleetSetting => ("application_config_variable", "application"),
            KeyValueKind::FleetTag => ("application_tag", "application"),
            KeyValueKind::ServiceVariable => ("service_environment_variable", "service"),
            KeyValueKind::DeviceVariable => ("device_environment_variable", "device"),
            KeyValueKind::DeviceSetting => ("device_config_variable", "device"),
            KeyValueKind::DeviceTag => ("device_tag", "device"),
            KeyValueKind::DeviceServiceVariable => {
                ("device_service_environment_variable", "service_install")
            }
            KeyValueKind::ReleaseTag => ("release_tag", "release"),
        }
    }

    /// The field of the name.
    const fn name(self) -> &'static str {
        match self {
            KeyValueKind::FleetTag | KeyValueKind::DeviceTag | KeyValueKind::ReleaseTag => {
                "tag_key"
            }
            _ => "name",
        }
    }

    /// What is asked of one.
    const fn fields(self) -> &'static str {
        match self {
            KeyValueKind::FleetTag | KeyValueKind::DeviceTag | KeyValueKind::ReleaseTag => {
                "id,tag_key,value"
            }
            _ => "id,name,value,is_secret",
        }
    }

    /// Whether a value may be one that nobody reads but the devices that get it.
    const fn may_be_secret(self) -> bool {
        !matches!(
            self,
            KeyValueKind::FleetTag | KeyValueKind::DeviceTag | KeyValueKind::ReleaseTag
        )
    }

    /// What people call one.
    const fn word(self) -> &'static str {
        match self {
            KeyValueKind::FleetTag | KeyValueKind::DeviceTag | KeyValueKind::ReleaseTag => "tag",
            KeyValueKind::FleetSetting | KeyValueKind::DeviceSetting => "setting",
            _ => "variable",
        }
    }

    fn named(resource: &str) -> PageResult<Self> {
        KeyValueKind::ALL
            .into_iter()
            .find(|kind| kind.resource().0 == resource)
            .ok_or_else(PageError::nothing_here)
    }
}

/// A name with its value. Both are hostile.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct KeyValue {
    pub(crate) id: i64,
    #[serde(alias = "tag_key")]
    pub(crate) name: String,
    /// None where it is not shown to whoever looks.
    pub(crate) value: Option<String>,
    /// Nobody reads the value but the devices that get it.
    #[serde(default)]
    pub(crate) is_secret: bool,
}

/// What there is of a kind with this owner, by name, as the visitor sees it.
///
/// # Errors
/// Where the API refuses it, or the database fails.
pub(crate) async fn list(
    visitor: &SessionUser,
    kind: KeyValueKind,
    owner: i64,
) -> PageResult<Vec<KeyValue>> {
    let (resource, link) = kind.resource();
    let name = kind.name();
    let fields = kind.fields();
    let query =
        format!("$select={fields}&$filter={link} eq {owner}&$orderby={name} asc&$top={MOST}");
    visitor.rows(&format!("/{resource}"), &query).await
}

/// A variable of a service, on every device of its fleet.
#[derive(Deserialize)]
pub(crate) struct ServiceKeyValue {
    pub(crate) service: Id,
    #[serde(flatten)]
    pub(crate) pair: KeyValue,
}

/// The variables of a fleet's services, by name, as the visitor sees them.
///
/// # Errors
/// As [`pairs`].
pub(crate) async fn of_services(
    visitor: &SessionUser,
    fleet: i64,
) -> PageResult<Vec<ServiceKeyValue>> {
    let (resource, _) = KeyValueKind::ServiceVariable.resource();
    let query = format!(
        "$select=id,name,value,is_secret,service&$filter=service/any(s:s/application eq {fleet})\
         &$orderby=name asc&$top={MOST}"
    );
    visitor.rows(&format!("/{resource}"), &query).await
}

/// The tags of a kind with this owner, on the page at `back`, as a part that follows.
///
/// # Errors
/// As [`pairs`].
pub(crate) async fn tags(
    visitor: &SessionUser,
    kind: KeyValueKind,
    owner: i64,
    back: &str,
) -> PageResult<LiveFragment> {
    let tags = list(visitor, kind, owner).await?;
    let table = KeyValueTable {
        caption: "Tags",
        empty: "No tags.",
        back,
        rows: tags
            .into_iter()
            .map(|pair| KeyValueRow::own(kind, pair))
            .collect(),
    };
    Ok(LiveFragment::new("tags", table.markup()))
}

/// Gives it this value, whether it was there or not.
///
/// # Errors
/// Where the API refuses it, or the database fails.
pub(crate) async fn set(
    visitor: &SessionUser,
    kind: KeyValueKind,
    owner: i64,
    name: &str,
    value: &str,
) -> PageResult<()> {
    let (resource, link) = kind.resource();
    let path = format!(
        "/{resource}({link}={owner},{}={})",
        kind.name(),
        literal(name)
    );
    let body = json!({ "value": value });
    visitor.change(Verb::Put, &path, "", body).await.map(|_| ())
}

/// Takes one away.
///
/// # Errors
/// 404 where there is none that the visitor may take away; where the database fails.
pub(crate) async fn remove(visitor: &SessionUser, kind: KeyValueKind, id: i64) -> PageResult<()> {
    let (resource, _) = kind.resource();
    visitor.delete(&format!("/{resource}({id})")).await
}

/// `POST /dashboard/pairs`: `to` is the resource and the owner, `back` the page without a script.
async fn add(visitor: SessionUser, form: Form) -> PageResult {
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
        (kind.resource().1.to_owned(), json!(owner)),
        (kind.name().to_owned(), json!(name)),
        ("value".to_owned(), json!(form.exact("value"))),
    ]);
    if form.has("secret") && kind.may_be_secret() {
        body.insert("is_secret".to_owned(), json!(true));
    }
    let path = format!("/{resource}");
    visitor.create(&path, Value::Object(body)).await?;
    Ok(visitor.done(&format!("Added {name}."), back(&form)))
}

/// `POST /dashboard/pairs/<resource>/<id>`: another `value`, perhaps `secret` from now on, or `delete`.
async fn change(
    visitor: SessionUser,
    Path((resource, id)): Path<(String, i64)>,
    form: Form,
) -> PageResult {
    let kind = KeyValueKind::named(&resource)?;
    if form.has("delete") {
        remove(&visitor, kind, id).await?;
        return Ok(visitor.done("Deleted.", back(&form)));
    }
    let mut body = json!({ "value": form.exact("value") });
    // Without the tick it stays what it was.
    if form.has("secret") && kind.may_be_secret() {
        body["is_secret"] = json!(true);
    }
    visitor.patch(&format!("/{resource}({id})"), body).await?;
    Ok(visitor.done("Saved.", back(&form)))
}

/// The page that a form was on.
pub(super) fn back(form: &Form) -> &str {
    local(form.text("back")).unwrap_or("/dashboard")
}
