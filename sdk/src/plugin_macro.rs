//! The macro that a plugin is declared with.

/// Declares the plugin: its manifest, and which function answers which route.
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
/// The parts stand in any order, with or without a comma between them. A plugin has at least one route or one action
/// (`identify`, `proxy_redirector`, `boot_config`, `os_update`, `on_event`, `actions`); all else may be left out. In names, `-` and `_` are the same.
///
/// - `description`, `vendor`, `licence`, `homepage`: texts that people read before they trust the plugin.
/// - `capabilities`: what the plugin asks for, with the reason that people read before they grant it.
/// - `routes`: method, path pattern (`:name` stands for one segment) and the `async fn` that answers.
/// - `openapi`: a file in the crate's folder that describes the routes, a part of an OpenAPI 3.1 document
///   in JSON with `paths` and `components.schemas`; it appears in the device's `GET /v3/openapi.json`.
/// - `identify`: the `async fn()` behind `POST /v1/blink`, see [`crate::identify`].
/// - `proxy_redirector`: the type that provides that action, see [`crate::proxy_redirector`].
/// - `boot_config`: the type that provides that action, see [`crate::boot_config`].
/// - `os_update`: the type that provides that action, see [`crate::os_update`].
/// - `events`, `schedules`, `on_event`: what the plugin is called for beside requests, and the `async fn` that is called,
///   see [`crate::events`].
/// - `actions`: actions of the plugin's own, each with the `async fn` that does it, see [`crate::actions`].
/// - `boards`: the device types that the plugin is for; `*` stands for any text. For those it goes
///   before a plugin that is for all boards and provides the same.
/// - `limits`: what the plugin needs beyond the defaults; the device's policy may allow less.
///
/// Name and version are those of the crate. If there is a `plugin.toml` beside `Cargo.toml`, name and version are
/// from there, and each part may be there instead: then `plugin! {}` can be all. docs/plugins.md describes that file.
/// Cargo notices its changes, but not that it is new: `touch src/lib.rs` once after you have added it.
///
/// The macro checks a declaration by the rules by which a device checks the manifest, and reports all mistakes at once:
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
/// A `Path` that takes another number of values than its route has `:names` is a mistake, too:
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
