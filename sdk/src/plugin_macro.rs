//! The macro that a plugin is declared with.

/// Declares the plugin: its manifest, and which function answers which route.
///
/// Name and version are those of the crate. Sections come in this order, each may be left out:
///
/// ```
/// use supervisor_sdk::{Error, Path, plugin};
///
/// plugin! {
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
/// - `capabilities`: what the plugin asks for, with the reason that people read before they grant it.
/// - `routes`: method, path pattern (`:name` stands for one segment) and the `async fn` that answers.
/// - `openapi`: a file in the crate's folder that describes the routes, a part of an OpenAPI 3.1 document
///   in JSON with `paths` and `components.schemas`; it appears in the device's `GET /v3/openapi.json`.
/// - `identify`: the `async fn()` behind `POST /v1/blink`, see [`crate::identify`].
/// - `proxy_redirector`: the type that provides that action, see [`crate::proxy_redirector`].
/// - `boot_config`: the type that provides that action, see [`crate::boot_config`].
/// - `boards`: the device types that the plugin is for; `*` stands for any text. For those it goes
///   before a plugin that is for all boards and provides the same.
/// - `limits`: what the plugin needs beyond the defaults; the device's policy may allow less.
///
/// Mistakes are compile errors:
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
#[macro_export]
macro_rules! plugin {
    (
        $(capabilities: { $($capability:ident => $reason:literal),* $(,)? } $(,)?)?
        $(routes: { $($method:ident $path:literal => $($handler:ident)::+),* $(,)? } $(,)?)?
        $(openapi: $openapi:literal $(,)?)?
        $(identify => $($identify:ident)::+ $(,)?)?
        $(proxy_redirector => $($proxy:ident)::+ $(,)?)?
        $(boot_config => $($boot:ident)::+ $(,)?)?
        $(boards: [$($board:literal),* $(,)?] $(,)?)?
        $(limits: { $($limit:ident: $value:literal),* $(,)? } $(,)?)?
    ) => {
        /// The implementation of this plugin's exports.
        #[doc(hidden)]
        pub struct Plugin;

        const _: () = {
            use $crate::manifest::Part::{Hyphenated, Quoted, Raw};

            $($($crate::manifest::check_capability(stringify!($capability));)*)?
            $($($crate::manifest::check_route(stringify!($method), $path);)*)?
            $($($crate::manifest::check_limit(stringify!($limit)); let _: u32 = $value;)*)?

            const PARTS: &[$crate::manifest::Part] = &[
                Raw("name = "), Quoted(env!("CARGO_PKG_NAME")),
                Raw("\nversion = "), Quoted(env!("CARGO_PKG_VERSION")),
                Raw("\ninterface = "), Quoted($crate::manifest::INTERFACE),
                Raw("\n"),
                Raw("provides = ["),
                $(Raw({ let _ = stringify!($($identify)::+); "\"identify\", " }),)?
                $(Raw({ let _ = stringify!($($proxy)::+); "\"proxy-redirector\", " }),)?
                $(Raw({ let _ = stringify!($($boot)::+); "\"boot-config\", " }),)?
                Raw("]\n"),
                $(Raw("boards = ["), $(Quoted($board), Raw(", "),)* Raw("]\n"),)?
                $(Raw("\n[limits]\n"), $(Raw(concat!(stringify!($limit), " = ", $value, "\n")),)*)?
                $($(
                    Raw("\n[[capabilities]]\nname = \""),
                    Hyphenated(stringify!($capability)),
                    Raw("\"\nreason = "),
                    Quoted($reason),
                    Raw("\n"),
                )*)?
                $($(
                    Raw(concat!("\n[[routes]]\nmethod = \"", stringify!($method), "\"\npath = ")),
                    Quoted($path),
                    Raw("\n"),
                )*)?
            ];
            const LENGTH: usize = $crate::manifest::length(PARTS);

            #[used]
            #[cfg_attr(target_arch = "wasm32", unsafe(link_section = "platform:manifest"))]
            static MANIFEST: [u8; LENGTH] = $crate::manifest::text(PARTS);

            // A component's custom section is outside what its code can reach.
            #[cfg(not(target_arch = "wasm32"))]
            impl Plugin {
                /// Returns the manifest as the component contains it.
                #[doc(hidden)]
                pub fn manifest() -> &'static [u8] {
                    &MANIFEST
                }
            }
        };

        $(const _: () = {
            const FILE: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $openapi));

            #[used]
            #[cfg_attr(target_arch = "wasm32", unsafe(link_section = "platform:openapi"))]
            static DESCRIPTION: [u8; FILE.len()] =
                *include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $openapi));
        };)?

        $(const _: () = {
            use $crate::bindings::endpoint::exports::platform::supervisor::handler as exported_handler;

            impl exported_handler::Guest for Plugin {
                async fn handle(
                    request: exported_handler::Request,
                ) -> Result<exported_handler::Response, exported_handler::Error> {
                    let request = $crate::Request::from(request);
                    $(if request.is(stringify!($method), $path) {
                        return $crate::expansion::Handler::call($($handler)::+, request).await;
                    })*
                    $crate::expansion::unknown(&request)
                }
            }
            $crate::bindings::endpoint::export_endpoint!(
                Plugin with_types_in $crate::bindings::endpoint
            );
        };)?

        $(
            impl $crate::bindings::identifier::exports::platform::supervisor::identify::Guest for Plugin {
                async fn identify() -> Result<(), String> {
                    $crate::expansion::identify($($identify)::+).await
                }
            }
            $crate::bindings::identifier::export_identifier!(
                Plugin with_types_in $crate::bindings::identifier
            );
        )?

        $(const _: () = {
            type ExportsOfPlugin = $crate::expansion::ProxyExports<$($proxy)::+>;
            $crate::bindings::proxy::export_proxy!(
                ExportsOfPlugin with_types_in $crate::bindings::proxy
            );
        };)?

        $(const _: () = {
            type ExportsOfPlugin = $crate::expansion::BootExports<$($boot)::+>;
            $crate::bindings::boot::export_boot!(
                ExportsOfPlugin with_types_in $crate::bindings::boot
            );
        };)?
    };
}
