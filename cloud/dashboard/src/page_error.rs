//! Refusals as people see them: at the form that they submitted, or as a page.

use axum::response::{IntoResponse, Response};
use cloud_core::answer::Refusal;
use http::{StatusCode, header};
use maud::{Markup, html};

/// The result of a page, or of a step towards one.
pub(crate) type PageResult<T = Response> = Result<T, PageError>;

/// Why something is not shown or done.
#[derive(Debug)]
pub(crate) struct PageError(pub(crate) Refusal);

impl PageError {
    /// 404: the page does not exist, or this user may not know of it.
    pub(crate) fn nothing_here() -> Self {
        PageError(Refusal::Missing(
            "This page does not exist, or you may not see it.".to_owned(),
        ))
    }

    /// 400, with advice on what to do about it.
    pub(crate) fn wrong(why: impl Into<String>) -> Self {
        PageError(Refusal::Wrong(why.into()))
    }
}

impl<T> From<T> for PageError
where
    Refusal: From<T>,
{
    fn from(error: T) -> Self {
        PageError(error.into())
    }
}

/// The text of a refusal, until the guard decides how to show it.
#[derive(Debug, Clone)]
pub(super) struct RefusalText(pub(super) String);

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, why, retry_after) = self.0.parts();
        let why = match (why, retry_after) {
            (_, Some(seconds)) if status == StatusCode::TOO_MANY_REQUESTS => {
                format!("Too many requests. Try again in {seconds} s.")
            }
            (None, _) if status == StatusCode::UNAUTHORIZED => {
                "You may not do this. Ask an administrator of the organization.".to_owned()
            }
            (Some(why), _) => sentence(&why),
            (None, _) => status.to_string(),
        };
        let mut response = status.into_response();
        if let Some(seconds) = retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(RefusalText(why));
        response
    }
}

/// Adds a capital letter and a full stop: the API's messages have neither.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    let end = if text.ends_with(['.', '!', '?']) || text.contains('\n') {
        ""
    } else {
        "."
    };
    format!("{first}{}{end}", letters.as_str())
}

/// An error message at a form.
pub(crate) fn notice(why: &str) -> Markup {
    html! { p.notice.bad { (why) } }
}
