//! Plugins' own actions: what one plugin does for others.
//!
//! **To provide actions**: `actions` of [`crate::plugin!`] names each action with the `async fn` that performs it. The
//! function takes what the caller sends: `Vec<u8>`, `String` or [`Json`] of a type, or nothing; in addition
//! it may take the [`Caller`]. It returns one of these, or a `Result`.
//!
//! ```
//! use serde::Deserialize;
//! use supervisor_sdk::{Error, Json, plugin};
//!
//! plugin! {
//!     actions: { set => set }
//! }
//!
//! #[derive(Deserialize)]
//! struct Rail { name: String, on: bool }
//!
//! async fn set(Json(rail): Json<Rail>) -> Result<Json<bool>, Error> {
//!     if rail.name != "5v" {
//!         return Err(Error::not_found(format!("there is no rail `{}`", rail.name)));
//!     }
//!     Ok(Json(rail.on))
//! }
//! ```
//!
//! **To call an action**: [`call`] or [`call_json`], with the capability `actions`; the policy names the actions that
//! the plugin may call. The full name of an action is the name of the plugin that provides it, a slash, and the
//! action's own name.
//!
//! ```
//! use serde_json::json;
//! use supervisor_sdk::{Error, actions};
//!
//! async fn switch_on() -> Result<bool, Error> {
//!     let rail = json!({ "name": "5v", "on": true });
//!     Ok(actions::call_json("acme-rails/set", &rail).await?)
//! }
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::capabilities::platform::supervisor::actions as wit;
use crate::capability_error::capability_error;
use crate::handler::{AsyncReturn, Handler};
use crate::{Caller, Json, json_text};

/// Calls an action of another plugin. Input and output have at most 512 KiB.
///
/// # Errors
/// [`Error`].
pub async fn call(action: &str, input: impl Into<Vec<u8>>) -> Result<Vec<u8>, Error> {
    Ok(wit::call(action.to_owned(), input.into()).await?)
}

/// Like [`call`], with JSON.
///
/// # Errors
/// [`Error`]; also if the input cannot be written as JSON, or the output does not fit `O`.
pub async fn call_json<O: DeserializeOwned>(
    action: &str,
    input: &impl Serialize,
) -> Result<O, Error> {
    let input = serde_json::to_vec(input).map_err(|error| Error::Invalid(error.to_string()))?;
    let output = call(action, input).await?;
    serde_json::from_slice(&output).map_err(|error| {
        Error::Failed(format!("`{action}` answered something unexpected: {error}"))
    })
}

capability_error! {
    /// The reason why an action was not performed.
    ///
    /// As a [`crate::Error`]: 409 if the other plugin refused, 502 if it failed, 503 if no plugin has the action, else
    /// 500.
    wit::ActionError {
        /// The policy does not grant this action to the plugin.
        NotGranted from NotGranted answers internal,
        /// No plugin of this device has this action at present.
        Unavailable from Unavailable answers unavailable,
        /// The input is too long.
        Invalid from Invalid answers internal,
        /// The other plugin refused; its own words.
        Refused from Refused answers conflict,
        /// The other plugin failed or exceeded its limits, or the chain of plugins that wait for each other is too
        /// long.
        Failed from Failed answers bad_gateway,
    }
}

/// What a function of `actions` can take as its input.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the input of an action",
    label = "this function takes `{Self}`",
    note = "the function of an action takes its input as `Vec<u8>`, `String` or `Json`, and may take `Caller` as well"
)]
pub trait ActionInput: Sized {
    fn from_bytes(input: Vec<u8>) -> Result<Self, String>;
}

impl ActionInput for Vec<u8> {
    fn from_bytes(input: Vec<u8>) -> Result<Self, String> {
        Ok(input)
    }
}

impl ActionInput for String {
    fn from_bytes(input: Vec<u8>) -> Result<Self, String> {
        String::from_utf8(input).map_err(|_| "the input is not text".to_owned())
    }
}

impl<T: DeserializeOwned> ActionInput for Json<T> {
    fn from_bytes(input: Vec<u8>) -> Result<Self, String> {
        json_text::read("the input", &input).map(Json)
    }
}

/// All arguments of a function of `actions`: its input and the caller, each if the function takes it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of an action",
    label = "this function takes `{Self}`",
    note = "the function of an action takes its input as `Vec<u8>`, `String` or `Json`, and may take `Caller` as well"
)]
pub trait ActionArguments: Sized {
    fn take(input: Vec<u8>) -> Result<Self, String>;
}

impl ActionArguments for () {
    fn take(_input: Vec<u8>) -> Result<Self, String> {
        Ok(())
    }
}

impl<I: ActionInput> ActionArguments for (I,) {
    fn take(input: Vec<u8>) -> Result<Self, String> {
        Ok((I::from_bytes(input)?,))
    }
}

impl ActionArguments for (Caller,) {
    fn take(_input: Vec<u8>) -> Result<Self, String> {
        Ok((Caller::current(),))
    }
}

impl<I: ActionInput> ActionArguments for (Caller, I) {
    fn take(input: Vec<u8>) -> Result<Self, String> {
        Ok((Caller::current(), I::from_bytes(input)?))
    }
}

impl<I: ActionInput> ActionArguments for (I, Caller) {
    fn take(input: Vec<u8>) -> Result<Self, String> {
        Ok((I::from_bytes(input)?, Caller::current()))
    }
}

/// What a function of `actions` can return.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of an action",
    label = "this function returns `{Self}`",
    note = "the function of an action returns `Vec<u8>`, `String`, `Json`, `()` or a `Result` of these"
)]
pub trait ActionOutput {
    fn into_bytes(self) -> Result<Vec<u8>, String>;
}

impl ActionOutput for () {
    fn into_bytes(self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }
}

impl ActionOutput for Vec<u8> {
    fn into_bytes(self) -> Result<Vec<u8>, String> {
        Ok(self)
    }
}

impl ActionOutput for String {
    fn into_bytes(self) -> Result<Vec<u8>, String> {
        Ok(self.into_bytes())
    }
}

impl<T: Serialize> ActionOutput for Json<T> {
    fn into_bytes(self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(&self.0).map_err(|error| error.to_string())
    }
}

impl<T: ActionOutput, E: std::fmt::Display> ActionOutput for Result<T, E> {
    fn into_bytes(self) -> Result<Vec<u8>, String> {
        self.map_or_else(|error| Err(error.to_string()), T::into_bytes)
    }
}

/// Calls a function that [`crate::plugin!`] names in `actions`.
#[doc(hidden)]
pub async fn perform<F, A>(function: F, input: Vec<u8>) -> Result<Vec<u8>, String>
where
    F: Handler<A>,
    A: ActionArguments,
    F::Return: AsyncReturn<Outcome: ActionOutput>,
{
    let arguments = A::take(input)?;
    function.call(arguments).outcome().await.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The call under test does not wait for anything.
    fn run_at_once(call: impl Future<Output = Result<Vec<u8>, String>>) -> Result<Vec<u8>, String> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(call).poll(&mut context) {
            std::task::Poll::Ready(result) => result,
            std::task::Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn a_function_takes_its_input_or_nothing() {
        async fn ping() -> String {
            "pong".to_owned()
        }
        async fn double(Json(number): Json<u8>) -> Json<u8> {
            Json(number * 2)
        }
        let input = b"4".to_vec();
        assert_eq!(
            run_at_once(perform(ping, input.clone())),
            Ok(b"pong".to_vec())
        );
        assert_eq!(run_at_once(perform(double, input)), Ok(b"8".to_vec()));
        let error = run_at_once(perform(double, b"x".to_vec())).unwrap_err();
        assert!(error.contains("the input is not JSON"), "{error}");
    }

    #[test]
    fn an_input_that_does_not_fit_is_refused_by_its_place() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Rail {
            name: String,
            on: bool,
        }
        let read = |input: &str| Json::<Rail>::from_bytes(input.as_bytes().to_vec());
        let rail = Rail {
            name: "5v".to_owned(),
            on: true,
        };
        let text = r#"{"name":"5v","on":true}"#;
        assert_eq!(read(&format!("\u{feff}{text}\n")), Ok(Json(rail)));
        let followed = format!("{text} garbage");
        for (input, expected) in [
            ("", "the input is missing: it must be JSON"),
            ("-7", "the input: invalid type: integer `-7`"),
            (r#"{"on":true}"#, "the input: missing field `name`"),
            (
                r#"{"name":"5v","on":"off"}"#,
                "field `on` of the input: invalid type: string \"off\"",
            ),
            (r#"{"name":"5v""#, "the input is not JSON: EOF"),
            (
                followed.as_str(),
                "the input is not JSON: trailing characters at line 1 column 25",
            ),
        ] {
            let error = read(input).unwrap_err();
            assert!(error.starts_with(expected), "{input}: {error}");
        }
    }

    #[test]
    fn input_and_output_are_bytes_text_or_json() {
        assert_eq!(String::from_bytes(b"on".to_vec()), Ok("on".to_owned()));
        assert!(String::from_bytes(vec![0xff]).is_err());
        let Json(number) = Json::<u8>::from_bytes(b"7".to_vec()).unwrap();
        assert_eq!(number, 7);
        assert_eq!(Json([1, 2]).into_bytes(), Ok(b"[1,2]".to_vec()));
        assert_eq!(().into_bytes(), Ok(Vec::new()));
        let failed: Result<(), &str> = Err("no such rail");
        assert_eq!(failed.into_bytes(), Err("no such rail".to_owned()));
    }
}
