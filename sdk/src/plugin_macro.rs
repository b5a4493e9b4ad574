//! The macro that declares a plugin.

/// Declares a plugin: its manifest, and which function answers which route.
///
/// ```
/// use supervisor_sdk::{Error, Path, plugin};
///
/// plugin! {
///     description: "Greets people, and shows them which device it is"
///     capabilities: {
///         device => "says which device answered",
///         led => "shows the device to a person",
///     }
///     routes: {
///         GET "/v3/hello/:name" => hello,
///         POST "/v3/hello/:name" => hello,
///     }
///     identify => blink,
///     boards: ["acme-*"]
///     limits: { memory_mib: 16, cpu_ms: 200, wall_ms: 5000, body_kib: 64, concurrency: 4 }
/// }
///
/// async fn hello(Path(name): Path<String>) -> String { name }
/// async fn blink() -> Result<(), Error> { Ok(()) }
/// ```
///
/// The parts may be in any order, with or without a comma between them. A plugin has at least one route or one action
/// (`identify`, `proxy_redirector`, `boot_config`, `os_update`, `on_event`, `actions`); all other parts are optional.
/// In names, `-` and `_` are the same.
///
/// - `description`, `vendor`, `licence`, `homepage`: texts that people read before they trust the plugin.
/// - `capabilities`: the capabilities that the plugin asks for, each with a reason that people read before they grant
///   it.
/// - `routes`: method, path pattern (`:name` stands for one segment) and the `async fn` that answers.
/// - `openapi`: a file in the crate's folder that describes the routes, a part of an OpenAPI 3.1 document in JSON with
///   `paths` and `components.schemas`; it appears in the device's `GET /v3/openapi.json`.
/// - `identify`: the `async fn()` behind `POST /v1/blink`, see [`crate::identify`].
/// - `proxy_redirector`: the type that provides that action, see [`crate::proxy_redirector`].
/// - `boot_config`: the type that provides that action, see [`crate::boot_config`].
/// - `os_update`: the type that provides that action, see [`crate::os_update`].
/// - `events`, `schedules`, `on_event`: what the plugin is called for in addition to requests, and the `async fn` that
///   is called, see [`crate::events`].
/// - `actions`: the plugin's own actions, each with the `async fn` that performs it, see [`crate::actions`].
/// - `boards`: the device types that the plugin is for; `*` stands for any text. On those it takes precedence over a
///   plugin that is for all boards and provides the same action.
/// - `limits`: the limits that the plugin needs beyond the defaults; the device's policy may allow less.
///
/// Name and version are those of the crate. If there is a `plugin.toml` next to `Cargo.toml`, name and version are
/// taken from that file, and each part may be declared there instead: then `plugin! {}` can be enough. docs/plugins.md
/// describes that file. Cargo notices changes to it, but not that it is new: run `touch src/lib.rs` once after you have
/// added it.
///
/// The macro checks a declaration by the same rules as a device checks the manifest, and reports all mistakes at once:
///
/// ```compile_fail
/// supervisor_sdk::plugin! { capabilities: { gpoi => "a typo" } }
/// ```
/// ```compile_fail
/// supervisor_sdk::plugin! { routes: { GET "v3/hello" => hello } }
/// async fn hello() {}
/// ```
/// ```compile_fail
/// supervisor_sdk::plugin! { routes: { FETCH "/v3/hello" => hello } }
/// async fn hello() {}
/// ```
/// It is also a mistake if a `Path` takes a different number of values than its route has `:names`:
///
/// ```compile_fail
/// use supervisor_sdk::Path;
///
/// supervisor_sdk::plugin! { routes: { GET "/v3/hello/:name" => hello } }
/// async fn hello(_: Path<(String, String)>) {}
/// ```
/// A crate declares one plugin:
///
/// ```compile_fail
/// supervisor_sdk::plugin! { routes: { GET "/v3/hello" => hello } }
/// supervisor_sdk::plugin! { routes: { GET "/v3/hello" => hello } }
/// async fn hello() {}
/// ```
pub use supervisor_sdk_macros::plugin;
