//! How much organizations keep, and how much they may: members look, administrators of the cloud change it.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use cloud_core::accounts::cloud_administrators::is_one;
use cloud_core::accounts::organization_quotas::{Changes, give, may_read};
use cloud_core::answer::Refusal;
use cloud_core::cloud::Cloud;
use data::SystemPurpose;
use data::quota::{Quota, QuotaUsage};
use maud::{Markup, html};

use super::account::with_password;
use super::form::{Form, Number, Search};
use super::page::{Page, Section};
use super::problem::{PageError, PageResult};
use super::state::DashboardState;
use super::visitor::SessionUser;

/// Organizations on a page.
const MOST: i64 = 200;
const PLACE: &str = "/dashboard/organizations";

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/organizations", get(list))
        .route("/organizations/{id}", get(page))
        .route("/organizations/{id}/quotas", post(change))
}

/// `GET /dashboard/organizations?after=<id>`: all of them, for administrators of the cloud.
async fn list(visitor: SessionUser, Search(search): Search) -> PageResult {
    if !is_one(&visitor.cloud, &visitor.identity).await? {
        return Err(PageError::nothing_here());
    }
    let after = search.text("after").parse::<i64>().unwrap_or(0);
    let select = SystemPurpose::Administration
        .sql("SELECT id, name, handle FROM organization WHERE id > ? ORDER BY id LIMIT ?");
    let rows = visitor
        .cloud
        .database
        .rows(&select.with(after).with(MOST))
        .await?;
    let mut organizations = Vec::with_capacity(rows.len());
    for row in &rows {
        organizations.push((row.id(0)?, row.some_text(1)?, row.some_text(2)?));
    }
    let last = match rows.len() {
        full if i64::try_from(full) == Ok(MOST) => organizations.last(),
        _ => None,
    };
    let main = html! {
        h1 { "Organizations" }
        p.faint { "As an administrator of the cloud, you can change the quotas of each organization." }
        table.rows {
            caption.hidden { "Organizations" }
            thead { tr { th scope="col" { "Name" } th scope="col" { "Handle" } th scope="col" { "Number" } } }
            tbody {
                @for (id, name, handle) in &organizations {
                    tr {
                        th scope="row" { a href={ (PLACE) "/" (id) } { (name) } }
                        td data-label="Handle" { (handle) }
                        td data-label="Number" { (id) }
                    }
                }
            }
        }
        @if let Some((id, _, _)) = last {
            p { a.button href={ (PLACE) "?after=" (id) } { "More" } }
        }
    };
    Ok(Page {
        visitor: &visitor,
        section: Section::Account,
        title: "Organizations",
        above: vec![("Account", "/dashboard/account".to_owned())],
        live: None,
        main,
    }
    .into_response())
}

/// `GET /dashboard/organizations/<id>`
async fn page(visitor: SessionUser, Number(id): Number) -> PageResult {
    let changes = is_one(&visitor.cloud, &visitor.identity).await?;
    if !changes && !may_read(&visitor.cloud, &visitor.identity, id).await? {
        return Err(PageError::nothing_here());
    }
    let name = SystemPurpose::Administration
        .sql("SELECT name FROM organization WHERE id = ?")
        .with(id);
    let name = visitor.cloud.database.row(&name).await?;
    let name = name.ok_or_else(PageError::nothing_here)?.some_text(0)?;
    let found = usage(&visitor.cloud, id).await?;
    let main = html! {
        h1 { (name) }
        @if changes {
            (form(&visitor, id, &found))
        } @else {
            section.card.stack aria-labelledby="quotas" {
                h2 id="quotas" { "Quotas" }
                p.faint { "An administrator of the cloud changes the limits." }
                (table(&found))
            }
        }
    };
    let mut above = vec![("Account", "/dashboard/account".to_owned())];
    if changes {
        above.push(("Organizations", PLACE.to_owned()));
    }
    Ok(Page {
        visitor: &visitor,
        section: Section::Account,
        title: "Quotas",
        above,
        live: None,
        main,
    }
    .into_response())
}

/// What an organization keeps and may.
pub(super) async fn usage(cloud: &Cloud, organization: i64) -> PageResult<Vec<QuotaUsage>> {
    let defaults = &cloud.environment.quotas;
    let found = cloud.database.quotas(organization, defaults).await;
    found.map_err(Refusal::from).map_err(PageError)
}

/// Where the limits of an organization are changed, for those who may.
pub(super) async fn place_to_change(
    visitor: &SessionUser,
    organization: i64,
) -> PageResult<Option<String>> {
    let may = is_one(&visitor.cloud, &visitor.identity).await?;
    Ok(may.then(|| format!("{PLACE}/{organization}")))
}

pub(super) fn table(found: &[QuotaUsage]) -> Markup {
    html! {
        table {
            thead { tr { th scope="col" { "Of" } th scope="col" { "Used" } th scope="col" { "Limit" } } }
            tbody {
                @for usage in found {
                    tr {
                        th scope="row" { (usage.quota.title()) }
                        td { (used(usage)) }
                        td { (usage.most) }
                    }
                }
            }
        }
    }
}

fn used(usage: &QuotaUsage) -> Markup {
    html! { @if let Some(kept) = usage.kept { (kept) } @else { span.faint { "each" } } }
}

fn form(visitor: &SessionUser, organization: i64, found: &[QuotaUsage]) -> Markup {
    let place = format!("{PLACE}/{organization}/quotas");
    html! {
        form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop"
            aria-labelledby="quotas" {
            h2 id="quotas" { "Quotas" }
            p.faint { "An empty limit means the cloud's default, which is shown in grey." }
            table {
                thead { tr { th scope="col" { "Of" } th scope="col" { "Used" } th scope="col" { "Limit" } } }
                tbody {
                    @for usage in found {
                        tr {
                            th scope="row" id={ "of-" (usage.quota.name()) } { (usage.quota.title()) }
                            td { (used(usage)) }
                            td {
                                input type="number" min="0" max=(i64::MAX) name=(usage.quota.name())
                                    aria-labelledby={ "of-" (usage.quota.name()) }
                                    value=[usage.given.then_some(usage.most)]
                                    placeholder=[(!usage.given).then_some(usage.most)];
                            }
                        }
                    }
                }
            }
            @if !visitor.claims.fresh() {
                label { "Your password"
                    input type="password" name="password" required maxlength="1000" autocomplete="current-password";
                }
            }
            div.answer role="status" {}
            div.buttons { button type="submit" { "Save the quotas" } }
        }
    }
}

/// `POST /dashboard/organizations/<id>/quotas`: all of them, as the form has them.
async fn change(
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    visitor: SessionUser,
    Number(id): Number,
    form: Form,
) -> PageResult {
    if !is_one(&visitor.cloud, &visitor.identity).await? {
        return Err(PageError::nothing_here());
    }
    let mut changes = Changes::new();
    for quota in Quota::ALL {
        // A form of an older page has not all of them.
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
    let identity = with_password(&visitor, &form, from).await?;
    give(&visitor.cloud, &identity, id, &changes)
        .await
        .map_err(|error| match error {
            Refusal::UnauthorizedSaying(_) => Refusal::Forbidden(
                "You signed in some time ago. Reload this page and enter your password to save the quotas."
                    .to_owned(),
            ),
            error => error,
        })?;
    Ok(visitor.done("The quotas were saved.", &format!("{PLACE}/{id}")))
}
