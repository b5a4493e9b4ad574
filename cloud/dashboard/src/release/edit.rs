//! The forms that change and delete a release.

use maud::{Markup, html};
use serde_json::json;

use super::row::Release;
use crate::form::{Form, Number};
use crate::page_error::PageResult;
use crate::rows::fleet_place;
use crate::session_user::SessionUser;

/// The forms that change it.
pub(super) fn edit(release: &Release) -> Markup {
    let place = release.name.place();
    html! {
        section.cards {
            form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
                h2 { "Version and note" }
                div {
                    label { "Version"
                        input name="semver" value=(release.semver) maxlength="255" spellcheck="false" autocomplete="off"
                            aria-describedby="version-hint";
                    }
                    small id="version-hint" { "For example 1.4.2. Without a version, the release is shown by its commit." }
                }
                label { "Note" textarea name="note" maxlength="100000" { (release.note.as_deref().unwrap_or_default()) } }
                @if !release.state.is_final {
                    label.tick { input type="checkbox" name="final"; "Finalize this draft (this cannot be undone)" }
                }
                div.answer role="status" {}
                div.buttons { button type="submit" { "Save" } }
            }
            form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
                @if release.state.is_invalidated {
                    h2 { "Mark as valid" }
                    p.faint { "The release can become the target of its fleet again." }
                    input type="hidden" name="validity" value="valid";
                    div.answer role="status" {}
                    div.buttons { button type="submit" { "Mark as valid" } }
                } @else {
                    h2 { "Invalidate" }
                    p.faint { "It can no longer become a target. Devices that run it keep it until they get another." }
                    input type="hidden" name="validity" value="invalid";
                    label { "Why" input name="reason" maxlength="255" autocomplete="off"; }
                    div.answer role="status" {}
                    div.buttons { button.danger type="submit" { "Invalidate" } }
                }
            }
        }
    }
}

/// `POST /dashboard/releases/<id>`: `validity` with a `reason`; or `semver`, `note` and `final`.
pub(super) async fn change(user: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let path = format!("/release({id})");
    let place = format!("/dashboard/releases/{id}");
    if form.has("validity") {
        let invalid = form.text("validity") == "invalid";
        let mut body = json!({ "is_invalidated": invalid });
        if let Some(reason) = form.filled("reason").filter(|_| invalid) {
            body["invalidation_reason"] = json!(reason);
        }
        user.patch(&path, body).await?;
        // The form has changed as well.
        return Ok(user.go(&place));
    }
    let release = Release::find(&user, id).await?;
    let mut body = json!({ "note": form.exact("note") });
    let version = form.text("semver");
    if !version.is_empty() && version != release.semver {
        body["semver"] = json!(version);
    }
    if form.has("final") {
        body["is_final"] = json!(true);
    }
    user.patch(&path, body).await?;
    if form.has("final") {
        Ok(user.go(&place))
    } else {
        Ok(user.done("Saved.", &place))
    }
}

pub(super) async fn delete(user: SessionUser, Number(id): Number, form: Form) -> PageResult {
    let release = Release::find(&user, id).await?;
    form.confirms(&release.name.commit)?;
    user.delete(&format!("/release({id})")).await?;
    let fleet = release.fleet.first().map_or(0, |fleet| fleet.id);
    Ok(user.go(&format!("{}/releases", fleet_place(fleet))))
}
