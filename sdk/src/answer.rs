//! What a handler may return.

use serde::Serialize;

use crate::{Error, Json, Response};

/// A value that can be sent to the caller.
///
/// Implement it for an error type to give a family of endpoints its own error format:
///
/// ```
/// use serde::Serialize;
/// use supervisor_sdk::{Answer, Error, Json, Response};
///
/// /// Errors of the v1 actions: `{"Data":"","Error":...}`.
/// struct ActionError { status: u16, message: String }
///
/// impl Answer for ActionError {
///     fn answer(self) -> Result<Response, Error> {
///         #[derive(Serialize)]
///         struct Wire { #[serde(rename = "Data")] data: &'static str, #[serde(rename = "Error")] error: String }
///         let wire = Wire { data: "", error: self.message };
///         Ok(Json(wire).answer()?.with_status(self.status))
///     }
/// }
///
/// async fn reboot() -> Result<Json<&'static str>, ActionError> {
///     Err(ActionError { status: 423, message: "locked".to_owned() })
/// }
/// ```
///
/// Requests that a handler's arguments refuse are still answered in the common error format; to use the family's
/// own format there too, take the argument as a `Result`, for example `Result<Json<Order>, Error>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of a handler",
    label = "this handler returns `{Self}`",
    note = "a handler returns `Json<T>`, text, `()`, `Response`, `Error` or a `Result` of these; implement `Answer` for other types"
)]
pub trait Answer {
    /// Returns the response, or the error that the host answers in the common format.
    ///
    /// # Errors
    /// The failure to send to the caller.
    fn answer(self) -> Result<Response, Error>;
}

impl Answer for Response {
    fn answer(self) -> Result<Response, Error> {
        Ok(self)
    }
}

impl Answer for Error {
    fn answer(self) -> Result<Response, Error> {
        Err(self)
    }
}

/// 200 with no body.
impl Answer for () {
    fn answer(self) -> Result<Response, Error> {
        Ok(Response::empty())
    }
}

/// 200 and `text/plain; charset=utf-8`.
impl Answer for String {
    fn answer(self) -> Result<Response, Error> {
        Ok(Response::text(self))
    }
}

/// 200 and `text/plain; charset=utf-8`.
impl Answer for &str {
    fn answer(self) -> Result<Response, Error> {
        Ok(Response::text(self))
    }
}

/// 200 and `application/json; charset=utf-8`.
impl<T: Serialize> Answer for Json<T> {
    fn answer(self) -> Result<Response, Error> {
        let bytes = serde_json::to_vec(&self.0).map_err(|error| {
            Error::internal(format_args!("failed to write the answer: {error}"))
        })?;
        Ok(Response::new(200)
            .with_header("content-type", Response::JSON)
            .with_body(bytes))
    }
}

impl<T: Answer, E: Answer> Answer for Result<T, E> {
    fn answer(self) -> Result<Response, Error> {
        match self {
            Ok(answer) => answer.answer(),
            Err(error) => error.answer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Body;

    fn shown(answer: impl Answer) -> (u16, String, String) {
        match answer.answer() {
            Ok(response) => {
                let kind = response.headers().get("content-type").unwrap_or("none");
                let kind = kind.to_owned();
                let body = response.body().whole().unwrap().to_vec();
                (response.status(), kind, String::from_utf8(body).unwrap())
            }
            Err(error) => (error.status(), "error".into(), error.message().into()),
        }
    }

    #[test]
    fn json_text_and_nothing_each_say_their_type() {
        let json = Json(json!({"a": 1}));
        let table = [
            (shown(json), (200, Response::JSON, r#"{"a":1}"#)),
            (shown("OK"), (200, Response::TEXT, "OK")),
            (shown(()), (200, "none", "")),
            (
                shown(Err::<(), _>(Error::locked("held by `web`"))),
                (423, "error", "held by `web`"),
            ),
            (
                shown(Response::new(202).with_body(Body::from("x"))),
                (202, "none", "x"),
            ),
        ];
        for (found, (status, kind, body)) in table {
            assert_eq!(found, (status, kind.to_owned(), body.to_owned()));
        }
    }

    #[test]
    fn a_family_may_answer_errors_in_its_own_format() {
        struct OwnAnswer;
        impl Answer for OwnAnswer {
            fn answer(self) -> Result<Response, Error> {
                Ok(Json(json!({"Data": "", "Error": "locked"}))
                    .answer()?
                    .with_status(423))
            }
        }
        let (status, _, body) = shown(Err::<Json<()>, _>(OwnAnswer));
        assert_eq!(
            (status, body.as_str()),
            (423, r#"{"Data":"","Error":"locked"}"#)
        );
    }

    #[test]
    fn a_value_that_is_no_json_is_the_plugins_own_failure() {
        let map = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert_eq!(shown(Json(map)).0, 500);
    }
}
