//! Turns an `async fn` into what the host calls. The macro [`crate::plugin!`] calls this; nobody else.

use std::fmt::Display;

use crate::bindings::endpoint::platform::supervisor::types as wit;
use crate::{Answer, Error, FromRequest, Request};

/// An `async fn` of up to six arguments that are each [`FromRequest`], which returns an [`Answer`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is an `async fn`; its arguments are `Path`, `Query`, `Json`, `Fields`, `Headers`, `Body`, `Caller` or `Request`, and it returns an `Answer`: `Json`, text, `()`, `Response`, or a `Result` of these"
)]
pub trait Handler<Arguments> {
    /// Takes the arguments out of `request`, and calls the function.
    fn call(self, request: Request) -> impl Future<Output = Result<wit::Response, wit::Error>>;
}

macro_rules! handlers {
    ($(($($argument:ident)*))*) => {
        $(impl<Function, Answering, $($argument,)*> Handler<($($argument,)*)> for Function
        where
            Function: FnOnce($($argument),*) -> Answering,
            Answering: Future<Output: Answer>,
            $($argument: FromRequest,)*
        {
            #[allow(unused_mut, unused_variables, non_snake_case, reason = "it has from zero to six arguments")]
            async fn call(self, mut request: Request) -> Result<wit::Response, wit::Error> {
                $(let $argument = $argument::from_request(&mut request).await?;)*
                Ok(self($($argument),*).await.answer()?.into())
            }
        })*
    };
}

handlers! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

/// The answer to a call that the manifest does not promise. The host makes no such calls.
///
/// # Errors
/// Always.
pub fn unknown(request: &Request) -> Result<wit::Response, wit::Error> {
    let message = format_args!("no handler for {} {}", request.method(), request.route());
    Err(Error::internal(message).into())
}

/// Runs the function behind `identify`.
///
/// # Errors
/// What the function failed with, as text for the log.
pub async fn identify<Outcome: Identified>(
    function: impl AsyncFnOnce() -> Outcome,
) -> Result<(), String> {
    function().await.outcome()
}

/// What a function behind `identify` may return.
pub trait Identified {
    #[doc(hidden)]
    fn outcome(self) -> Result<(), String>;
}

impl Identified for () {
    fn outcome(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Display> Identified for Result<(), E> {
    fn outcome(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}

impl From<Error> for wit::Error {
    fn from(error: Error) -> Self {
        Self {
            status: error.status(),
            code: error.code().to_owned(),
            message: error.message().to_owned(),
        }
    }
}
