//! A fleet's settings: its name, who shares it, and its end.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::together::update_now;
use super::{Fleet, Tab};
use crate::form::{DeleteForm, Form, Number};
use crate::key_values::{AddForm, KeyValueKind, list as key_values, tags};
use crate::live::{LiveFragment, stream_fragments};
use crate::problem::PageResult;
use crate::quotas;
use crate::state::DashboardState;
use crate::switch::OVERRIDE_LOCKS;
use crate::visitor::SessionUser;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/fleets/{id}/settings", get(page).post(change))
        .route("/fleets/{id}/settings/live", get(live))
        .route("/fleets/{id}/delete", post(delete))
}

async fn page(visitor: SessionUser, Number(id): Number) -> PageResult {
    let fleet = Fleet::find(&visitor, id).await?;
    let at = format!("{}/settings", fleet.place());
    let [switches, tags] = parts(&visitor, &fleet).await?;
    let tag = AddForm {
        back: &at,
        choices: vec![(KeyValueKind::FleetTag, id, String::new())],
    };
    let main = html! {
        div.cards {
            @if fleet.may_change {
                (name(&fleet))
                (update_now(&fleet))
                section.card.stack aria-labelledby="switches" {
                    h2 id="switches" { "Switches" }
                    (switches.placed())
                }
            }
            (people(&visitor, &fleet).await?)
            (quotas_card(&visitor, &fleet).await?)
        }
        section.stack aria-labelledby="tags" {
            h2 id="tags" { "Tags" }
            (tags.placed())
            @if fleet.may_change { (tag.markup()) }
        }
        @if fleet.may_change { (end(&fleet)) }
    };
    let live = Some(format!("{at}/live"));
    Ok(fleet
        .page(&visitor, Tab::Settings, live, &main)
        .into_response())
}

async fn live(
    State(state): State<DashboardState>,
    visitor: SessionUser,
    Number(id): Number,
) -> PageResult {
    stream_fragments(state, visitor, move |visitor| async move {
        let fleet = Fleet::find(&visitor, id).await?;
        Ok(parts(&visitor, &fleet).await?.into())
    })
    .await
}

async fn parts(visitor: &SessionUser, fleet: &Fleet) -> PageResult<[LiveFragment; 2]> {
    let at = format!("{}/settings", fleet.place());
    let settings = key_values(visitor, KeyValueKind::FleetSetting, fleet.id).await?;
    let branding = &visitor.cloud.configuration.branding;
    let of = (KeyValueKind::FleetSetting, fleet.id);
    let switches = OVERRIDE_LOCKS.markup(branding, of, &settings, &[], &at);
    Ok([
        LiveFragment::new("switches", switches),
        tags(visitor, KeyValueKind::FleetTag, fleet.id, &at).await?,
    ])
}

fn name(fleet: &Fleet) -> Markup {
    let place = format!("{}/settings", fleet.place());
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
    user: Vec<User>,
}

#[derive(Deserialize)]
struct User {
    username: String,
    email: Option<String>,
}

#[derive(Deserialize)]
struct Owner {
    organization: Vec<Organization>,
}

#[derive(Deserialize)]
struct Organization {
    id: i64,
    name: String,
}

async fn people(visitor: &SessionUser, fleet: &Fleet) -> PageResult<Markup> {
    let path = format!("/application({})", fleet.id);
    let query = "$select=id&$expand=organization($select=id,name)";
    let owner: Owner = visitor.row(&path, query).await?;
    let expand = "$select=id&$expand=user($select=username,email)";
    let members: Vec<Member> = match owner.organization.first() {
        None => Vec::new(),
        Some(organization) => {
            let filter = format!("is_member_of__organization eq {}", organization.id);
            let query = format!("{expand}&$filter={filter}&$top=200");
            visitor.rows("/organization_membership", &query).await?
        }
    };
    let filter = format!("is_member_of__application eq {}", fleet.id);
    let query = format!("{expand}&$filter={filter}&$top=200");
    let shared: Vec<Member> = visitor.rows("/user_application_membership", &query).await?;
    Ok(html! {
        section.card.stack aria-labelledby="people" {
            h2 id="people" { "People" }
            p.faint {
                @match owner.organization.first() {
                    Some(organization) => { "Members of " strong { (organization.name) } ", which owns this fleet:" }
                    None => "This fleet belongs to an organization that you may not see.",
                }
            }
            (list(&members))
            h3 { "Shared with" }
            @if shared.is_empty() { p.faint { "Nobody else." } } @else { (list(&shared)) }
        }
    })
}

/// What the organization keeps, and how much it may.
async fn quotas_card(visitor: &SessionUser, fleet: &Fleet) -> PageResult<Markup> {
    let path = format!("/application({})", fleet.id);
    let query = "$select=id&$expand=organization($select=id,name)";
    let owner: Owner = visitor.row(&path, query).await?;
    let Some(organization) = owner.organization.first() else {
        return Ok(html! {});
    };
    let found = quotas::usage(&visitor.cloud, organization.id).await?;
    let change = quotas::place_to_change(visitor, organization.id).await?;
    Ok(html! {
        section.card.stack aria-labelledby="quotas" {
            h2 id="quotas" { "Quotas" }
            p.faint { "What " strong { (organization.name) } " keeps, and how much it may. An administrator of the cloud changes it." }
            (quotas::table(&found))
            @if let Some(place) = change { div.buttons { a.button href=(place) { "Change the quotas" } } }
        }
    })
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

fn end(fleet: &Fleet) -> Markup {
    let end = DeleteForm {
        what: "fleet",
        place: &fleet.place(),
        with_it: "Its devices, releases, variables and keys are deleted too. This cannot be undone.",
    };
    end.markup(&html! { "name, " strong { (fleet.app_name) } })
}

/// `POST /dashboard/fleets/<id>/settings`
async fn change(visitor: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let fleet = Fleet::find(&visitor, id).await?;
    let mut body = json!({ "is_public": form.has("public") });
    if form.text("name") != fleet.app_name {
        body["app_name"] = json!(form.text("name"));
    }
    visitor.patch(&format!("/application({id})"), body).await?;
    Ok(visitor.go(&format!("{}/settings", fleet.place())))
}

async fn delete(visitor: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let fleet = Fleet::find(&visitor, id).await?;
    form.confirms(&fleet.app_name)?;
    visitor.delete(&format!("/application({id})")).await?;
    Ok(visitor.go("/dashboard"))
}
