//! A new key on a page, which shows it once.

use axum::response::Response;
use cloud_core::accounts::keys::{self, KeyDescription};
use cloud_core::answer::Refusal;
use cloud_core::random::random_text;
use maud::html;
use resources::Role;

use super::page_error::PageResult;
use super::session_user::SessionUser;

impl SessionUser {
    /// Creates a key of an actor. `back` is the address that the page leads to without a script, and the text of the
    /// link.
    ///
    /// # Errors
    /// If the database fails.
    pub(crate) async fn make_key(
        &self,
        actor: i64,
        role: Role,
        description: KeyDescription,
        back: (&str, &str),
    ) -> PageResult<Response> {
        let key = random_text(16).map_err(Refusal::Fault)?;
        keys::store_key(&self.cloud, actor, role, &key, description).await?;
        let notice = html! {
            div.once {
                p { "The key, shown this once:" }
                p.line {
                    code { (key) }
                    button.small type="button" data-copy=(key) { "Copy" }
                }
            }
        };
        Ok(self.answer("The key", None, notice, back))
    }
}
