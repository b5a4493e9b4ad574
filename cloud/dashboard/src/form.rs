//! Forms: their fields, and the answers to them.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::response::{IntoResponse, Redirect, Response};
use cloud_core::body;
use http::request::Parts;
use maud::{Markup, html};

use super::page;
use super::page_error::{PageError, PageResult};
use super::session_user::{SessionUser, leave_for};
use super::state::DashboardState;

/// The maximum number of fields in a form.
const MOST: usize = 2000;

/// The fields of a form: names and values, as the browser sent them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Returns the value of a field without surrounding space, or an empty text if the form has no such field.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.first(name).unwrap_or_default().trim()
    }

    /// Like [`Form::text`], but `None` if the field is empty.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Returns the end of the chosen day, if there is one, as the API expects times.
    pub(crate) fn end_of_day(&self, name: &str) -> Option<String> {
        self.filled(name).map(|day| format!("{day}T23:59:59Z"))
    }

    /// Returns the value of a field exactly as it was typed.
    pub(crate) fn exact(&self, name: &str) -> &str {
        self.first(name).unwrap_or_default()
    }

    /// Returns whether a box was ticked, or a button with that name pressed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// Returns every value of that name.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let fields = self.0.iter();
        fields
            .filter(move |(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    }

    fn first(&self, name: &str) -> Option<&str> {
        let fields = &mut self.0.iter();
        fields
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns a field that contains the number of a row.
    ///
    /// # Errors
    /// 400 if it is not a number.
    pub(crate) fn number(&self, name: &str) -> PageResult<i64> {
        self.text(name)
            .parse()
            .map_err(|_| PageError::wrong(format!("Choose a {name}.")))
    }

    /// Checks that the word that [`delete_form`] asks for was typed.
    ///
    /// # Errors
    /// 400 if it was not.
    pub(crate) fn confirms(&self, word: &str) -> PageResult<()> {
        if self.text("confirm") == word {
            Ok(())
        } else {
            Err(PageError::wrong(format!(
                "Nothing was deleted: type `{word}` to confirm."
            )))
        }
    }

    fn read(text: &[u8]) -> PageResult<Self> {
        let fields: Vec<(String, String)> = form_urlencoded::parse(text)
            .take(MOST + 1)
            .map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")))
            .collect();
        if fields.len() > MOST {
            Err(PageError::wrong(format!(
                "The form has more than {MOST} fields."
            )))
        } else {
            Ok(Form(fields))
        }
    }
}

impl FromRequest<DashboardState> for Form {
    type Rejection = PageError;

    async fn from_request(request: Request<Body>, state: &DashboardState) -> PageResult<Self> {
        let most = state.cloud.configuration.limits.body;
        let bytes = body::bytes(request.into_body(), most).await?;
        Form::read(&bytes)
    }
}

/// The form that deletes something (`fleet`) at an address once a word is typed there ([`Form::confirms`]): `word`
/// describes what to type. `consequences` is what is deleted with it.
pub(crate) fn delete_form(what: &str, place: &str, consequences: &str, word: &Markup) -> Markup {
    let place = format!("{place}/delete");
    html! {
        details.card {
            summary { "Delete this " (what) }
            form.stack.form method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
                p { (consequences) }
                label { "Type its " (word) ", to confirm"
                    input name="confirm" required autocomplete="off" autocapitalize="none" spellcheck="false";
                }
                div.answer role="alert" {}
                div.buttons { button.danger type="submit" { "Delete the " (what) } }
            }
        }
    }
}

/// The fields in the query of an address, such as those of a search.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search(pub(crate) Form);

impl FromRequestParts<DashboardState> for Search {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, _: &DashboardState) -> PageResult<Self> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Search(Form::read(query.as_bytes())?))
    }
}

/// The number of a row in an address; anything else there is a 404.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number(pub(crate) i64);

impl FromRequestParts<DashboardState> for Number {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &DashboardState) -> PageResult<Self> {
        let Path(id) = Path::<i64>::from_request_parts(parts, state)
            .await
            .map_err(|_| PageError::nothing_here())?;
        Ok(Number(id))
    }
}

impl SessionUser {
    /// Answers a successful change with the page at `place`, by a reload that does not repeat the change.
    pub(crate) fn go(&self, place: &str) -> Response {
        if self.in_place {
            leave_for(place)
        } else {
            Redirect::to(place).into_response()
        }
    }

    /// Answers a change that the open page shows by itself: with `word` at the form, or without a script with the page
    /// at `place`.
    pub(crate) fn done(&self, word: &str, place: &str) -> Response {
        if self.in_place {
            html! { p.notice.good { (word) } }.into_response()
        } else {
            Redirect::to(place).into_response()
        }
    }

    /// Answers a change that no page shows: with `notice` at the form, or without a script on a page of its own, which
    /// leads back.
    pub(crate) fn answer(
        &self,
        title: &str,
        heading: Option<&str>,
        notice: Markup,
        (place, back): (&str, &str),
    ) -> Response {
        if self.in_place {
            return notice.into_response();
        }
        let main = html! {
            @if let Some(heading) = heading { h1 { (heading) } }
            (notice)
            p { a.button href=(place) { (back) } }
        };
        page::bare(title, main).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_so_many_fields_and_no_more() {
        let fields = |number: usize| Form::read("a=1&".repeat(number).as_bytes());
        let form = fields(MOST).expect("a form");
        assert_eq!(form.all("a").count(), MOST);
        assert!(fields(MOST + 1).is_err());
    }

    #[test]
    fn only_the_word_itself_confirms() {
        for (text, expected) in [
            ("confirm=valves", true),
            ("confirm=+valves+", true),
            ("confirm=Valves", false),
            ("confirm=valve", false),
            ("confirm=", false),
            ("other=valves", false),
            ("confirm=pumps&confirm=valves", false),
        ] {
            let form = Form::read(text.as_bytes()).expect("a form");
            assert_eq!(form.confirms("valves").is_ok(), expected, "{text}");
        }
    }
}
