mod additions;

use expect_test::expect;
use wasmtime_wit_parser::Resolve;

use super::*;

/// Returns the code for the interface `uptime` with this content.
fn code(generate: fn(&[Interface<'_>]) -> Result<String>, content: &str) -> Result<String> {
    let others = "interface others { record foreign { a: u8 } }";
    let text = format!("package a:b;\n{others}\ninterface uptime {{ {content} }}");
    let mut resolve = Resolve::default();
    let package = resolve.push_source("uptime.wit", &text)?;
    let interface = Interface {
        id: resolve.packages[package].interfaces["uptime"],
        resolve: &resolve,
        name: "uptime",
        capability: "Uptime",
    };
    generate(&[interface]).map(|code| indented(&code))
}

const CONTENT: &str = "
    /// A span of time.
    record span {
        /// For people.
        name: string,
        seconds: f64,
        parts: list<span-part>,
    }
    enum span-part { day, night }
    variant uptime-error {
        /// It is not known.
        unknown(string),
    }
    /// The longest of these.
    longest: async func(spans: list<span>, bytes: list<u8>, before: option<list<u8>>) -> result<option<span>, uptime-error>;
    seconds: func() -> u64;";

#[test]
fn a_function_is_a_row_of_the_table_of_calls_and_a_function_of_the_host() {
    let code = code(protocol, CONTENT).unwrap();
    expect![[r#"
        pub mod uptime {
            #[derive(Copy, Eq)]
            #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
            pub enum SpanPart {
                Day,
                Night,
            }
            /// A span of time.
            #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
            pub struct Span {
                /// For people.
                pub name: String,
                pub seconds: f64,
                #[serde(with = "crate::bounded_list")]
                pub parts: Vec<SpanPart>,
            }
            #[derive(Eq, thiserror::Error)]
            #[error("{0}")]
            #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
            pub enum UptimeError {
                /// It is not known.
                Unknown(String),
            }
            /// What the host does for plugins: the functions of `wit/uptime.wit`.
            pub trait Host {
                /// The longest of these.
                fn longest(&self, spans: Vec<Span>, bytes: Vec<u8>, before: Option<Vec<u8>>) -> impl Future<Output = Result<Option<Span>, UptimeError>> + Send;
                fn seconds(&self) -> impl Future<Output = u64> + Send;
            }
        }
        macro_rules! with_wit_calls {
            ($table:ident { $($rows:tt)* }) => {
                $table! {
                    $($rows)*
                    /// The longest of these.
                    #[allow(missing_docs, reason = "described in `wit/`")]
                    UptimeLongest needs [Uptime] by [crate::wit::uptime::Host: longest] {
                        #[serde(with = "crate::bounded_list")]
                        spans: Vec<crate::wit::uptime::Span>,
                        #[serde(with = "serde_bytes")]
                        bytes: Vec<u8>,
                        #[serde(with = "serde_bytes")]
                        before: Option<Vec<u8>>
                    } -> Result<Option<crate::wit::uptime::Span>, crate::wit::uptime::UptimeError>;
                    #[allow(missing_docs, reason = "described in `wit/`")]
                    UptimeSeconds needs [Uptime] by [crate::wit::uptime::Host: seconds] {

                    } -> u64;
                }
            };
        }
    "#]]
    .assert_eq(&code);
}

#[test]
fn a_function_sends_its_call_and_its_types_are_converted() {
    let code = code(runtime, CONTENT).unwrap();
    let functions = code.split("    impl From").next().unwrap();
    expect![[r#"
        mod uptime {
            use plugin_protocol::wit::uptime as plain;
            use crate::bindings::platform::supervisor::uptime as wit;
            use crate::capabilities::lengths::Lengths as _;
            use crate::guest::{Guest, GuestAccess, GuestData, host};
            use crate::instance_host::Answer;
            impl wit::Host for &mut Guest {
                async fn seconds(&mut self) -> wasmtime::Result<u64> {
                    let call = plugin_protocol::UptimeSeconds {
                    };
                    let value = self.host.ask(call).await?;
                    Ok(value)
                }
            }
            impl wit::HostWithStore<Guest> for GuestData {
                async fn longest(access: &GuestAccess, spans: Vec<wit::Span>, bytes: Vec<u8>, before: Option<Vec<u8>>) -> Answer<Option<wit::Span>, wit::UptimeError> {
                    let call = plugin_protocol::UptimeLongest {
                        spans: spans.into_iter().map(|entry| entry.into()).collect(),
                        bytes: bytes,
                        before: before,
                    };
                    let answer = host(access).try_ask(call).await?;
                    Ok(answer.map(|value| value.map(|value| value.into())))
                }
            }
    "#]]
    .assert_eq(functions);
    for converted in [
        "parts: value.parts.into_iter().map(|entry| entry.into()).collect(),",
        "wit::SpanPart::Night => Self::Night,",
        "plain::UptimeError::Unknown(content) => Self::Unknown(content),",
    ] {
        assert!(code.contains(converted), "{converted} in {code}");
    }
}

#[test]
fn types_that_cannot_be_sent_or_have_no_bound_are_named() {
    for (content, place, expected) in [
        (
            "resource clock { read: func(); }",
            "[method]clock.read",
            "a borrow",
        ),
        (
            "flags days { monday }\nread: func(a: days);",
            "read",
            "a flags",
        ),
        ("read: func() -> stream<u8>;", "read", "a stream"),
        (
            "use others.{foreign};\nread: func(a: foreign);",
            "read",
            "a record that is not its own",
        ),
        (
            "read: func(a: option<list<string>>);",
            "read",
            "a list inside another value has no limit",
        ),
        (
            "record span { a: list<tuple<string, list<u32>>> }",
            "Span",
            "a list inside another value has no limit",
        ),
        (
            "record span { a: u8 }\nread: func(a: tuple<u8, span>);",
            "read",
            "a tuple cannot contain",
        ),
    ] {
        let refused = code(protocol, content).and_then(|_| code(runtime, content));
        let message = format!("{:#}", refused.unwrap_err());
        let place = format!("`{place}` in `wit/uptime.wit`");
        for expected in [&place, expected] {
            assert!(message.contains(expected), "{content}: {message}");
        }
    }
    let bytes = "send: func(headers: list<tuple<string, list<u8>>>, body: option<list<u8>>);";
    assert!(code(protocol, bytes).is_ok());
}
