//! How much organizations store, and their limits: members can see them, administrators of the cloud can change them.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::routing::{get, post};
use cloud_core::accounts::cloud_administrators::is_one;
use cloud_core::accounts::organization_quotas::{Changes, give, may_read};
use cloud_core::answer::Refusal;
use cloud_core::cloud::Cloud;
use data::SystemPurpose;
use data::quota::{Quota, QuotaUsage};
use maud::{Markup, html};

use super::form::{Form, Number, Search};
use super::page::{Page, Section};
use super::page_error::{PageError, PageResult};
use super::recent_sign_in::{explained, with_password};
use super::rows::NamedRow;
use super::session_user::SessionUser;
use super::show::{card, head, table};
use super::state::Routes;

/// The number of organizations on a page.
const MOST: i64 = 200;
const PLACE: &str = "/dashboard/organizations";

pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/organizations", get(list))
        .route("/organizations/{id}", get(page))
        .route("/organizations/{id}/quotas", post(change))
}

/// `GET /dashboard/organizations?after=<id>`: all organizations, for administrators of the cloud.
async fn list(user: SessionUser, Search(search): Search) -> PageResult<Markup> {
    if !is_one(&user.cloud, &user.identity).await? {
        return Err(PageError::nothing_here());
    }
    let after = search.text("after").parse::<i64>().unwrap_or(0);
    let select = SystemPurpose::Administration
        .sql("SELECT id, name, handle FROM organization WHERE id > ? ORDER BY id LIMIT ?");
    let database = &user.cloud.database;
    let rows = database.rows(&select.with(after).with(MOST)).await?;
    let mut organizations = Vec::with_capacity(rows.len());
    for row in &rows {
        organizations.push((row.id(0)?, row.some_text(1)?, row.some_text(2)?));
    }
    let last = match rows.len() {
        full if i64::try_from(full) == Ok(MOST) => organizations.last(),
        _ => None,
    };
    let rows = organizations.iter().map(|(id, name, handle)| {
        html! {
            tr {
                th scope="row" { a href={ (PLACE) "/" (id) } { (name) } }
                td data-label="Handle" { (handle) }
                td data-label="Number" { (id) }
            }
        }
    });
    let main = html! {
        h1 { "Organizations" }
        p.faint { "As an administrator of the cloud, you can change the quotas of each organization." }
        (table("Organizations", &["Name", "Handle", "Number"], None, rows))
        @if let Some((id, _, _)) = last {
            p { a.button href={ (PLACE) "?after=" (id) } { "More" } }
        }
    };
    Ok(Page::below(Section::Account, "Organizations", main).markup(&user))
}

/// `GET /dashboard/organizations/<id>`
async fn page(user: SessionUser, Number(id): Number) -> PageResult<Markup> {
    let changes = is_one(&user.cloud, &user.identity).await?;
    if !changes && !may_read(&user.cloud, &user.identity, id).await? {
        return Err(PageError::nothing_here());
    }
    let name = SystemPurpose::Administration
        .sql("SELECT name FROM organization WHERE id = ?")
        .with(id);
    let name = user.cloud.database.row(&name).await?;
    let name = name.ok_or_else(PageError::nothing_here)?.some_text(0)?;
    let usage = usage(&user.cloud, id).await?;
    let main = html! {
        h1 { (name) }
        @if changes {
            (form(&user, id, &usage))
        } @else {
            (card("quotas", "Quotas", &html! {
                p.faint { "An administrator of the cloud changes the limits." }
                (usage_table(&usage, false))
            }))
        }
    };
    let mut page = Page::below(Section::Account, "Quotas", main);
    if changes {
        page.above
            .push(("Organizations".to_owned(), PLACE.to_owned()));
    }
    Ok(page.markup(&user))
}

/// The usage and limits of the organization that owns a fleet, with a form for people who may change the limits.
pub(super) async fn render_owner(
    user: &SessionUser,
    organization: &NamedRow,
) -> PageResult<Markup> {
    let usage = usage(&user.cloud, organization.id).await?;
    let may_change = is_one(&user.cloud, &user.identity).await?;
    let quotas = html! {
        p.faint {
            "How much " strong { (organization.name) } " stores, and its limits. An administrator of the cloud changes
            them."
        }
        (usage_table(&usage, false))
        @if may_change {
            div.buttons { a.button href={ (PLACE) "/" (organization.id) } { "Change the quotas" } }
        }
    };
    Ok(card("quotas", "Quotas", &quotas))
}

async fn usage(cloud: &Cloud, organization: i64) -> PageResult<Vec<QuotaUsage>> {
    let defaults = &cloud.environment.quotas;
    let usage = cloud.database.quotas(organization, defaults).await;
    Ok(usage.map_err(Refusal::from)?)
}

/// The quotas and their usage. In the form that changes them (`editable`) each limit is a field.
fn usage_table(quotas: &[QuotaUsage], editable: bool) -> Markup {
    let id = |usage: &QuotaUsage| format!("of-{}", usage.quota.name());
    html! {
        table {
            (head(&["Quota", "Used", "Limit"], None))
            tbody {
                @for usage in quotas {
                    tr {
                        th scope="row" id=[editable.then(|| id(usage))] { (usage.quota.title()) }
                        td { @if let Some(count) = usage.kept { (count) } @else { span.faint { "each" } } }
                        td {
                            @if editable {
                                input type="number" min="0" max=(i64::MAX) name=(usage.quota.name())
                                    aria-labelledby=(id(usage)) value=[usage.given.then_some(usage.most)]
                                    placeholder=[(!usage.given).then_some(usage.most)];
                            } @else {
                                (usage.most)
                            }
                        }
                    }
                }
            }
        }
    }
}

fn form(user: &SessionUser, organization: i64, quotas: &[QuotaUsage]) -> Markup {
    let place = format!("{PLACE}/{organization}/quotas");
    html! {
        form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop"
            aria-labelledby="quotas" {
            h2 id="quotas" { "Quotas" }
            p.faint { "An empty limit means the cloud's default, which is shown in grey." }
            (usage_table(quotas, true))
            @if !user.claims.fresh() {
                label { "Your password"
                    input type="password" name="password" required maxlength="1000" autocomplete="current-password";
                }
            }
            div.answer role="status" {}
            div.buttons { button type="submit" { "Save the quotas" } }
        }
    }
}

/// `POST /dashboard/organizations/<id>/quotas`: sets all of them, as given in the form.
async fn change(
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    user: SessionUser,
    Number(id): Number,
    form: Form,
) -> PageResult {
    if !is_one(&user.cloud, &user.identity).await? {
        return Err(PageError::nothing_here());
    }
    let mut changes = Changes::new();
    for quota in Quota::ALL {
        // A form of an older page may lack some of them.
        if !form.has(quota.name()) {
            continue;
        }
        let limit = form.text(quota.name());
        let number = limit.parse::<i64>().ok().filter(|number| *number >= 0);
        changes.push(match (limit, number) {
            ("", _) => (quota, None),
            (_, Some(number)) => (quota, Some(number)),
            _ => {
                let why = format!("`{}` must be a whole number, 0 or greater.", quota.title());
                return Err(PageError::wrong(why));
            }
        });
    }
    let identity = with_password(&user, &form, from).await?;
    let result = give(&user.cloud, &identity, id, &changes).await;
    result.map_err(|error| explained(error, "to save the quotas"))?;
    Ok(user.done("The quotas were saved.", &format!("{PLACE}/{id}")))
}
