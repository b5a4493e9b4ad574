//! Turns an `async fn` into a function that the host can call. Used only by the macro [`crate::plugin!`].
//!
//! Each mistake that a handler can have violates a bound of its own, so the compiler names the mistake: how many
//! arguments it has ([`Handler`]), each argument ([`FromRequest`]), whether it is `async` ([`AsyncReturn`]), and what
//! it returns ([`Answer`]).

use std::fmt::Display;

use crate::bindings::endpoint::platform::supervisor::types as wit;
use crate::{Answer, Error, FromRequest, Request};

pub(crate) mod names;

/// A function of up to six arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "not a function of up to six arguments",
    note = "a handler is an `async fn` with up to six arguments: `Path`, `Query`, `Json`, `Fields`, `Headers`, `Body`, `Caller` or `Request`"
)]
pub trait Handler<Arguments> {
    /// The type it returns: a future, if it is an `async fn`.
    type Return;

    /// Calls the function.
    fn call(self, arguments: Arguments) -> Self::Return;
}

/// What an `async fn` returns.
#[diagnostic::on_unimplemented(
    message = "a handler must be an `async fn`",
    label = "this function is not `async`",
    note = "write `async fn` in place of `fn`"
)]
pub trait AsyncReturn {
    /// The type it returns after `await`.
    type Outcome;

    /// Waits for the outcome.
    fn outcome(self) -> impl Future<Output = Self::Outcome>;
}

#[diagnostic::do_not_recommend]
impl<F: Future> AsyncReturn for F {
    type Outcome = F::Output;

    fn outcome(self) -> impl Future<Output = F::Output> {
        self
    }
}

/// All arguments of a handler.
pub trait Arguments: Sized {
    /// Extracts them from the request, one after the other.
    fn take(request: &mut Request) -> impl Future<Output = Result<Self, Error>>;
}

macro_rules! handlers {
    ($(($($argument:ident)*))*) => {
        $(
            impl<Function, Return, $($argument,)*> Handler<($($argument,)*)> for Function
            where
                Function: FnOnce($($argument),*) -> Return,
            {
                type Return = Return;

                #[allow(non_snake_case, reason = "arguments are named after their types")]
                fn call(self, ($($argument,)*): ($($argument,)*)) -> Return {
                    self($($argument),*)
                }
            }

            impl<$($argument: FromRequest,)*> Arguments for ($($argument,)*) {
                #[allow(unused_variables, reason = "it has from zero to six arguments")]
                async fn take(request: &mut Request) -> Result<Self, Error> {
                    Ok(($($argument::from_request(request).await?,)*))
                }
            }
        )*
    };
}

handlers! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

/// Extracts the arguments from `request`, and calls the function.
///
/// # Errors
/// The error that the caller receives instead of an answer.
pub async fn call<F, A>(function: F, mut request: Request) -> Result<wit::Response, wit::Error>
where
    F: Handler<A>,
    A: Arguments,
    F::Return: AsyncReturn<Outcome: Answer>,
{
    let arguments = A::take(&mut request).await?;
    let answer = function.call(arguments).outcome().await;
    Ok(answer.answer()?.into())
}

/// Answers a call that the manifest does not declare. The host makes no such calls.
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
/// The function's error, as text for the log.
pub async fn identify<F>(function: F) -> Result<(), String>
where
    F: Handler<()>,
    F::Return: AsyncReturn<Outcome: IdentifyOutcome>,
{
    function.call(()).outcome().await.outcome()
}

/// What a function behind `identify` may return.
#[diagnostic::on_unimplemented(
    message = "the function behind `identify` cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "it returns nothing, or a `Result<(), E>` whose error is text for the log"
)]
pub trait IdentifyOutcome {
    #[doc(hidden)]
    fn outcome(self) -> Result<(), String>;
}

impl IdentifyOutcome for () {
    fn outcome(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Display> IdentifyOutcome for Result<(), E> {
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
