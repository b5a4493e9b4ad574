//! A fleet's settings: its name, the people it is shared with, and its deletion.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::tabs::{Fleet, SETTINGS};
use super::together::update_now;
use crate::form::{Form, Number, delete_form};
use crate::key_values::{KeyValueKind, list as key_values, tags, tags_section};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::PageResult;
use crate::quotas;
use crate::rows::NamedRow;
use crate::session_user::SessionUser;
use crate::show::card;
use crate::switch::OVERRIDE_LOCKS;

/// What is deleted together with a fleet.
const CONSEQUENCES: &str =
    "Its devices, releases, variables and keys are deleted too. This cannot be undone.";

pub(super) struct FleetSettingsPage(Fleet);

impl LivePage for FleetSettingsPage {
    type Address = Number;
    type Parts = [LiveFragment; 2];

    async fn load(user: &SessionUser, Number(id): Number) -> PageResult<Self> {
        Ok(FleetSettingsPage(Fleet::find(user, id).await?))
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        let FleetSettingsPage(fleet) = self;
        let place = fleet.settings_place();
        let settings = key_values(user, KeyValueKind::FleetSetting, fleet.id).await?;
        let branding = &user.cloud.configuration.branding;
        let of = (KeyValueKind::FleetSetting, fleet.id);
        let switches = OVERRIDE_LOCKS.markup(branding, of, &settings, &[], &place);
        Ok([
            LiveFragment::new("switches", switches),
            tags(user, KeyValueKind::FleetTag, fleet.id, &place).await?,
        ])
    }

    async fn page(&self, user: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [switches, tags] = parts;
        let FleetSettingsPage(fleet) = self;
        let organization = owner(user, fleet).await?;
        let may_change = fleet.may_change;
        let word = html! { "name, " strong { (fleet.app_name) } };
        let main = html! {
            div.cards {
                @if may_change {
                    (name(fleet))
                    (update_now(fleet))
                    (card("switches", "Switches", &switches.placed()))
                }
                (people(user, fleet, organization.as_ref()).await?)
                @if let Some(organization) = &organization { (quotas::render_owner(user, organization).await?) }
            }
            (tags_section(&tags, may_change, KeyValueKind::FleetTag, fleet.id, &fleet.settings_place()))
            @if may_change { (delete_form("fleet", &fleet.place(), CONSEQUENCES, &word)) }
        };
        Ok(fleet.page(SETTINGS, &main))
    }
}

fn name(fleet: &Fleet) -> Markup {
    let place = fleet.settings_place();
    html! {
        form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
            h2 { "Name" }
            label { "Name of the fleet"
                input name="name" value=(fleet.app_name) required minlength="4" maxlength="100" autocomplete="off";
            }
            label.tick {
                input type="checkbox" name="public" checked[fleet.is_public];
                "Public: everybody may see it and its releases"
            }
            div.answer role="status" {}
            div.buttons { button type="submit" { "Save" } }
        }
    }
}

#[derive(Deserialize)]
struct Member {
    user: Vec<MemberUser>,
}

#[derive(Deserialize)]
struct MemberUser {
    username: String,
    email: Option<String>,
}

/// The organization that owns a fleet, if the user sees it.
#[derive(Deserialize)]
struct Owner {
    organization: Vec<NamedRow>,
}

async fn owner(user: &SessionUser, fleet: &Fleet) -> PageResult<Option<NamedRow>> {
    let query = "$select=id&$expand=organization($select=id,name)";
    let owner: Owner = user.row(&fleet.path(), query).await?;
    Ok(owner.organization.into_iter().next())
}

async fn people(
    user: &SessionUser,
    fleet: &Fleet,
    organization: Option<&NamedRow>,
) -> PageResult<Markup> {
    let members = match organization {
        None => Vec::new(),
        Some(organization) => {
            let filter = format!("is_member_of__organization eq {}", organization.id);
            members_of(user, "/organization_membership", &filter).await?
        }
    };
    let filter = format!("is_member_of__application eq {}", fleet.id);
    let shared = members_of(user, "/user_application_membership", &filter).await?;
    let people = html! {
        p.faint {
            @match organization {
                Some(organization) => { "Members of " strong { (organization.name) } ", which owns this fleet:" }
                None => "This fleet belongs to an organization that you may not see.",
            }
        }
        (list(&members))
        h3 { "Shared with" }
        @if shared.is_empty() { p.faint { "Nobody else." } } @else { (list(&shared)) }
    };
    Ok(card("people", "People", &people))
}

async fn members_of(
    user: &SessionUser,
    memberships: &str,
    filter: &str,
) -> PageResult<Vec<Member>> {
    let query =
        format!("$select=id&$expand=user($select=username,email)&$filter={filter}&$top=200");
    user.rows(memberships, &query).await
}

fn list(members: &[Member]) -> Markup {
    html! {
        ul.people {
            @for user in members.iter().flat_map(|member| &member.user) {
                li { (user.username) @if let Some(email) = &user.email { " " span.faint { (email) } } }
            }
        }
    }
}

/// `POST /dashboard/fleets/<id>/settings`
pub(super) async fn change(user: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let fleet = Fleet::find(&user, id).await?;
    let mut body = json!({ "is_public": form.has("public") });
    if form.text("name") != fleet.app_name {
        body["app_name"] = json!(form.text("name"));
    }
    user.patch(&fleet.path(), body).await?;
    Ok(user.go(&fleet.settings_place()))
}

pub(super) async fn delete(user: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let fleet = Fleet::find(&user, id).await?;
    form.confirms(&fleet.app_name)?;
    user.delete(&fleet.path()).await?;
    Ok(user.go("/dashboard"))
}
