//! A fleet's settings: its name, who shares it, and its end.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cloud_core::cloud::{Cloud, SharedCloud};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::together::update_now;
use super::{Fleet, Tab};
use crate::form::{DeleteForm, Form, Number};
use crate::key_values::{AddForm, KeyValueKind, list as key_values, tags};
use crate::live::{LiveFragment, stream_fragments};
use crate::problem::PageError;
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

async fn page(
    State(cloud): State<SharedCloud>,
    visitor: SessionUser,
    Number(id): Number,
) -> Result<Response, PageError> {
    let fleet = Fleet::find(&cloud, &visitor, id).await?;
    let at = format!("{}/settings", fleet.place());
    let [switches, tags] = parts(&cloud, &visitor, &fleet).await?;
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
            (people(&cloud, &visitor, &fleet).await?)
            (quotas_card(&cloud, &visitor, &fleet).await?)
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
) -> Result<Response, PageError> {
    stream_fragments(state, visitor, move |cloud, visitor| async move {
        let fleet = Fleet::find(&cloud, &visitor, id).await?;
        Ok(parts(&cloud, &visitor, &fleet).await?.into())
    })
    .await
}

async fn parts(
    cloud: &Cloud,
    visitor: &SessionUser,
    fleet: &Fleet,
) -> Result<[LiveFragment; 2], PageError> {
    let at = format!("{}/settings", fleet.place());
    let settings = key_values(cloud, visitor, KeyValueKind::FleetSetting, fleet.id).await?;
    let branding = &cloud.configuration.branding;
    let of = (KeyValueKind::FleetSetting, fleet.id);
    let switches = OVERRIDE_LOCKS.markup(branding, of, &settings, &[], &at);
    Ok([
        LiveFragment::new("switches", switches),
        tags(cloud, visitor, KeyValueKind::FleetTag, fleet.id, &at).await?,
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

async fn people(cloud: &Cloud, visitor: &SessionUser, fleet: &Fleet) -> Result<Markup, PageError> {
    let path = format!("/application({})", fleet.id);
    let query = "$select=id&$expand=organization($select=id,name)";
    let owner: Owner = visitor.row(cloud, &path, query).await?;
    let expand = "$select=id&$expand=user($select=username,email)";
    let members: Vec<Member> = match owner.organization.first() {
        None => Vec::new(),
        Some(organization) => {
            let filter = format!("is_member_of__organization eq {}", organization.id);
            let query = format!("{expand}&$filter={filter}&$top=200");
            visitor
                .rows(cloud, "/organization_membership", &query)
                .await?
        }
    };
    let filter = format!("is_member_of__application eq {}", fleet.id);
    let query = format!("{expand}&$filter={filter}&$top=200");
    let shared: Vec<Member> = visitor
        .rows(cloud, "/user_application_membership", &query)
        .await?;
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
async fn quotas_card(
    cloud: &Cloud,
    visitor: &SessionUser,
    fleet: &Fleet,
) -> Result<Markup, PageError> {
    let path = format!("/application({})", fleet.id);
    let query = "$select=id&$expand=organization($select=id,name)";
    let owner: Owner = visitor.row(cloud, &path, query).await?;
    let Some(organization) = owner.organization.first() else {
        return Ok(html! {});
    };
    let found = quotas::usage(cloud, organization.id).await?;
    let change = quotas::place_to_change(cloud, visitor, organization.id).await?;
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
async fn change(
    State(cloud): State<SharedCloud>,
    visitor: SessionUser,
    Number(id): Number,
    form: Form,
) -> Result<Response, PageError> {
    let fleet = Fleet::find(&cloud, &visitor, id).await?;
    let mut body = json!({ "is_public": form.has("public") });
    if form.text("name") != fleet.app_name {
        body["app_name"] = json!(form.text("name"));
    }
    visitor
        .patch(&cloud, &format!("/application({id})"), body)
        .await?;
    Ok(visitor.go(&format!("{}/settings", fleet.place())))
}

async fn delete(
    State(cloud): State<SharedCloud>,
    visitor: SessionUser,
    Number(id): Number,
    form: Form,
) -> Result<Response, PageError> {
    let fleet = Fleet::find(&cloud, &visitor, id).await?;
    form.confirms(&fleet.app_name)?;
    visitor
        .delete(&cloud, &format!("/application({id})"))
        .await?;
    Ok(visitor.go("/dashboard"))
}
