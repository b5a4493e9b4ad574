//! `organizations` and `organization …`: the owners of fleets.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arguments::people::OrganizationCommand;
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::output::{Output, plain, quiet, when};
use crate::rows::{self, Id};

/// An organization as the API returns it, with its links expanded.
#[derive(Deserialize)]
struct OrganizationRow {
    id: i64,
    name: String,
    handle: String,
    created_at: String,
    application: i64,
    organization_membership: Vec<Membership>,
}

#[derive(Deserialize)]
struct Membership {
    #[serde(deserialize_with = "rows::first")]
    user: Option<Id>,
    #[serde(
        rename = "organization_membership_role",
        deserialize_with = "rows::role"
    )]
    role: Option<String>,
}

/// An organization as it is printed.
#[derive(Serialize)]
struct Organization {
    id: i64,
    handle: String,
    name: String,
    /// The role of the signed-in user in it.
    role: Option<String>,
    members: usize,
    fleets: i64,
    created_at: String,
}

impl Organization {
    fn from_row(row: OrganizationRow, myself: Option<i64>) -> Self {
        let members = row.organization_membership.len();
        let mine = row
            .organization_membership
            .into_iter()
            .find(|it| it.user.as_ref().map(|user| user.id) == myself);
        Organization {
            id: row.id,
            handle: row.handle,
            name: row.name,
            role: mine.and_then(|mine| mine.role),
            members,
            fleets: row.application,
            created_at: row.created_at,
        }
    }
}

/// The fields of an [`OrganizationRow`].
const FIELDS: &str = "$select=id,name,handle,created_at\
    &$expand=application/$count,organization_membership($select=id;\
    $expand=user($select=id),organization_membership_role($select=name))";

/// An organization that a command refers to.
#[derive(Deserialize)]
pub(super) struct OrganizationRef {
    pub(super) id: i64,
    pub(super) handle: String,
    name: String,
}

/// Finds an organization by its handle, name or id; without one, the only organization that the user belongs to.
///
/// # Errors
/// If there is none, or there are several.
pub(super) async fn meant(cloud: &Cloud, text: Option<&str>) -> Result<OrganizationRef> {
    let query = "$select=id,handle,name&$orderby=handle asc";
    let all: Vec<OrganizationRef> = cloud.rows("organization", query).await?;
    let handles = |some: &[OrganizationRef]| {
        let handles: Vec<&str> = some.iter().map(|one| one.handle.as_str()).collect();
        handles.join(", ")
    };
    let Some(text) = text else {
        let hint = format!("choose one with `--organization`: {}", handles(&all));
        let several = all.len() > 1;
        return match all.into_iter().next() {
            Some(only) if !several => Ok(only),
            Some(_) => Err(Failure::usage("you belong to several organizations").hint(hint)),
            None => Err(Failure::not_allowed("you do not belong to an organization")
                .hint("`fleet organization create` creates one")),
        };
    };
    let own = handles(&all);
    let by_handle = |one: &OrganizationRef| one.handle == text;
    let alike = |one: &OrganizationRef| one.name == text || one.id.to_string() == text;
    let is_handle = all.iter().any(by_handle);
    let mut candidates = all;
    candidates.retain(|one| by_handle(one) || !is_handle && alike(one));
    match candidates.len() {
        0 => Err(
            Failure::not_found(format!("there is no organization `{text}`")).hint(
                if own.is_empty() {
                    "you belong to none".to_owned()
                } else {
                    format!("you belong to {own}")
                },
            ),
        ),
        1 => Ok(candidates.remove(0)),
        _ => Err(
            Failure::usage(format!("`{text}` matches several organizations")).hint(format!(
                "choose one by its handle: {}",
                handles(&candidates)
            )),
        ),
    }
}

/// Returns the user who is signed in, by a session or a key.
pub(super) async fn myself(cloud: &Cloud) -> Result<Option<i64>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Whoami {
        actor_type: String,
        actor_type_id: i64,
    }
    let who: Whoami = cloud.get("/actor/v1/whoami").await?;
    Ok((who.actor_type == "user").then_some(who.actor_type_id))
}

pub(crate) async fn list(cloud: &Cloud, output: &Output) -> Result<()> {
    let query = format!("{FIELDS}&$orderby=handle asc");
    let rows: Vec<OrganizationRow> = cloud.rows("organization", &query).await?;
    let me = myself(cloud).await?;
    let all: Vec<Organization> = rows
        .into_iter()
        .map(|row| Organization::from_row(row, me))
        .collect();
    output.rows(
        &all,
        &[
            ("HANDLE", |one| plain(&one.handle)),
            ("NAME", |one| plain(&one.name)),
            ("YOU ARE", |one| plain(&one.role)),
            ("MEMBERS", |one| plain(&one.members.to_string())),
            ("FLEETS", |one| plain(&one.fleets.to_string())),
            ("ID", |one| quiet(&one.id.to_string())),
        ],
        "you do not belong to an organization; `fleet organization create NAME` creates one",
    );
    Ok(())
}

pub(crate) async fn run(
    cloud: &Cloud,
    output: &Output,
    command: OrganizationCommand,
) -> Result<()> {
    match command {
        OrganizationCommand::Create { name, handle } => {
            let mut body = json!({ "name": name });
            if let Some(handle) = &handle {
                body["handle"] = json!(handle);
            }
            let made = cloud.create("organization", &body).await;
            let id = made.map_err(|failure| match (failure.is_duplicate(), &handle) {
                (true, Some(handle)) => Failure::failed(format!(
                    "an organization with the handle `{handle}` already exists"
                ))
                .hint("choose another one, or leave `--handle` out"),
                _ => failure,
            })?;
            let made = read(cloud, id).await?;
            output.done(
                format!("created the organization {} (id {id})", made.handle),
                &serde_json::to_value(&made).unwrap_or_default(),
            );
        }
        OrganizationCommand::Show { organization } => {
            let organization_ref = meant(cloud, Some(&organization)).await?;
            let details = read(cloud, organization_ref.id).await?;
            output.details(
                &details,
                &[
                    ("handle", Some(details.handle.clone())),
                    ("name", Some(details.name.clone())),
                    ("id", Some(details.id.to_string())),
                    ("you are", details.role.clone()),
                    ("members", Some(details.members.to_string())),
                    ("fleets", Some(details.fleets.to_string())),
                    ("created", Some(when(&details.created_at))),
                ],
            );
        }
        OrganizationCommand::Rename { organization, name } => {
            let organization_ref = meant(cloud, Some(&organization)).await?;
            let body = json!({ "name": name });
            cloud
                .change(&format!("organization({})", organization_ref.id), &body)
                .await?;
            output.done(
                format!("the organization {} is now called {name}", organization_ref.handle),
                &json!({ "id": organization_ref.id, "handle": organization_ref.handle, "name": name }),
            );
        }
        OrganizationCommand::Delete { organization, yes } => {
            let organization_ref = meant(cloud, Some(&organization)).await?;
            let what = format!(
                "delete the organization {} with its fleets and their devices",
                organization_ref.handle
            );
            ask::confirmed(&what, yes)?;
            cloud
                .delete(&format!("organization({})", organization_ref.id))
                .await?;
            output.done(
                format!("deleted the organization {}", organization_ref.handle),
                &json!({ "deleted": { "id": organization_ref.id, "handle": organization_ref.handle } }),
            );
        }
    }
    Ok(())
}

async fn read(cloud: &Cloud, id: i64) -> Result<Organization> {
    let row: Option<OrganizationRow> = cloud.row(&format!("organization({id})"), FIELDS).await?;
    let gone = || Failure::not_found("the organization no longer exists");
    Ok(Organization::from_row(
        row.ok_or_else(gone)?,
        myself(cloud).await?,
    ))
}
