//! Writes the code to which the macro expands.

use plugin_manifest::{Action, Project, Route};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;

use crate::check::CheckedPlugin;
use crate::declare::{Declaration, ValidPlugin};
use crate::package::Package;

/// Expands the macro into the plugin, or into its errors.
pub(crate) fn expand(input: TokenStream, package: &Package) -> TokenStream {
    let Declaration {
        outcome,
        functions,
        types,
        has_project,
    } = Declaration::read(input, package);
    // Makes cargo rebuild the crate if the file changes.
    let project = has_project.then(|| {
        let file = beside_cargo_toml(Project::FILE);
        quote!(
            const _: &[::core::primitive::u8] = ::core::include_bytes!(#file);
        )
    });
    match outcome {
        Ok(valid) => {
            let plugin = write(&valid);
            quote!(#plugin #project)
        }
        Err(error) => {
            let errors = error.into_compile_error();
            quote! {
                #errors
                #project
                #(const _: () = { let _ = #functions; };)*
                #(const _: ::core::marker::PhantomData<#types> = ::core::marker::PhantomData;)*
            }
        }
    }
}

fn write(valid: &ValidPlugin) -> TokenStream {
    let ValidPlugin { plugin, manifest } = valid;
    let length = manifest.len();
    let manifest = Literal::byte_string(manifest.as_bytes());
    let description = plugin.openapi.as_deref().map(description);
    let endpoint = (!plugin.handlers.is_empty()).then(|| endpoint(plugin));
    let providers = plugin.manifest.provides.iter().zip(&plugin.providers);
    let providers = providers.map(|(action, path)| provider(*action, path));
    let actions = (!plugin.actions.is_empty()).then(|| own_actions(&plugin.actions));
    quote! {
        // The compiler shows the name of what is defined twice, so the name explains the mistake.
        #[doc(hidden)]
        #[allow(dead_code, non_camel_case_types, reason = "the name is a sentence")]
        struct A_crate_can_call_plugin_only_once;

        /// The contents of the component, for tests of the crate. A component itself cannot read them there.
        #[doc(hidden)]
        #[cfg(not(target_arch = "wasm32"))]
        pub struct Plugin;

        const _: () = {
            // Two modules of a crate can define the same name, but not the same symbol. If several symbols are
            // defined twice, the compiler names the first in alphabetical order, in which capitals come before the
            // other exports.
            #[used]
            #[unsafe(export_name = "A_crate_can_call_plugin_only_once")]
            #[cfg_attr(target_arch = "wasm32", unsafe(link_section = "platform:manifest"))]
            static MANIFEST: [::core::primitive::u8; #length] = *#manifest;

            #[cfg(not(target_arch = "wasm32"))]
            impl Plugin {
                /// Returns the manifest.
                #[doc(hidden)]
                #[must_use]
                pub fn manifest() -> &'static [::core::primitive::u8] {
                    &MANIFEST
                }
            }
        };

        #description
        #endpoint
        #(#providers)*
        #actions
    }
}

/// Returns the section that describes the routes.
fn description(path: &str) -> TokenStream {
    let file = beside_cargo_toml(path);
    quote! {
        const _: () = {
            const FILE: &[::core::primitive::u8] = ::core::include_bytes!(#file);

            #[used]
            #[cfg_attr(target_arch = "wasm32", unsafe(link_section = "platform:openapi"))]
            static DESCRIPTION: [::core::primitive::u8; FILE.len()] = *::core::include_bytes!(#file);
        };
    }
}

fn beside_cargo_toml(path: &str) -> TokenStream {
    let path = format!("/{path}");
    quote!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), #path))
}

/// Returns the export `handler`, which calls the function of the route.
fn endpoint(plugin: &CheckedPlugin) -> TokenStream {
    let checks = plugin.manifest.routes.iter().zip(&plugin.handlers);
    let checks = checks.map(|(route, handler)| check_names(route, handler));
    // A handler may have any name, including that of a variable here.
    let request = Ident::new("request", Span::mixed_site());
    let calls = plugin.manifest.routes.iter().zip(&plugin.handlers);
    let calls = calls.map(|(route, handler)| {
        let (method, path) = (route.method.as_str(), route.pattern.as_str());
        let call = quote_spanned!(handler.span()=> ::supervisor_sdk::expansion::call(#handler, #request).await);
        quote! {
            if #request.is(#method, #path) {
                return #call;
            }
        }
    });
    let wit = quote!(::supervisor_sdk::bindings::endpoint::exports::platform::supervisor::handler);
    quote! {
        const _: () = {
            #(#checks)*

            struct ExportsOfPlugin;

            impl #wit::Guest for ExportsOfPlugin {
                async fn handle(
                    #request: #wit::Request,
                ) -> ::core::result::Result<#wit::Response, #wit::Error> {
                    let #request = ::supervisor_sdk::Request::from(#request);
                    #(#calls)*
                    ::supervisor_sdk::expansion::unknown(&#request)
                }
            }

            #[cfg(not(target_arch = "wasm32"))]
            impl Plugin {
                /// Calls a handler as the host does.
                #[doc(hidden)]
                pub async fn handle(
                    #request: #wit::Request,
                ) -> ::core::result::Result<#wit::Response, #wit::Error> {
                    <ExportsOfPlugin as #wit::Guest>::handle(#request).await
                }
            }

            ::supervisor_sdk::bindings::endpoint::export_endpoint!(
                ExportsOfPlugin with_types_in ::supervisor_sdk::bindings::endpoint
            );
        };
    }
}

/// Checks that the `Path` of a handler takes as many values as its route has `:names`, if its type fixes their
/// number.
fn check_names(route: &Route, handler: &syn::Path) -> TokenStream {
    let count = route.pattern.names().count();
    let names = match count {
        0 => "no `:name`".to_owned(),
        1 => "one `:name`".to_owned(),
        count => format!("{count} `:names`"),
    };
    let remedy = match count {
        0 => "leave out its argument `Path`".to_owned(),
        1 => "take `Path<String>`, for example".to_owned(),
        count => format!(
            "take `Path<({})>`, for example",
            vec!["String"; count].join(", ")
        ),
    };
    let function = handler.to_token_stream().to_string().replace(' ', "");
    let message = format!(
        "`{route}` has {names}, and the `Path` of `{function}` takes another number of values: {remedy}"
    );
    let names = quote_spanned!(handler.span()=> ::supervisor_sdk::expansion::arguments(#handler));
    let assertion = quote_spanned!(handler.span()=> ::core::assert!(FITS, #message););
    quote! {
        const _: () = {
            const FITS: ::core::primitive::bool = ::supervisor_sdk::expansion::fits(&|| {
                #[allow(unused_imports, reason = "for arguments that do not say how many values they take")]
                use ::supervisor_sdk::expansion::UnknownNumber as _;
                let (a, b, c, d, e, f) = #names;
                (a.number(), b.number(), c.number(), d.number(), e.number(), f.number())
            }, #count);
            #assertion
        };
    }
}

/// Returns the export `action-provider`, which calls the function of the action.
fn own_actions(actions: &[(String, syn::Path)]) -> TokenStream {
    let wit = quote!(
        ::supervisor_sdk::bindings::provider::exports::platform::supervisor::action_provider
    );
    // A function may have any name, including that of a variable here.
    let name = Ident::new("name", Span::mixed_site());
    let input = Ident::new("input", Span::mixed_site());
    let arms = actions.iter().map(|(action, path)| {
        let call = quote_spanned!(path.span()=> ::supervisor_sdk::expansion::own_action(#path, #input).await);
        quote!(#action => #call,)
    });
    quote! {
        const _: () = {
            struct ExportsOfPlugin;

            impl #wit::Guest for ExportsOfPlugin {
                async fn call(
                    #name: ::std::string::String,
                    #input: ::std::vec::Vec<::core::primitive::u8>,
                ) -> ::core::result::Result<::std::vec::Vec<::core::primitive::u8>, ::std::string::String> {
                    match #name.as_str() {
                        #(#arms)*
                        _ => ::core::result::Result::Err(::std::format!("there is no action `{}`", #name)),
                    }
                }
            }

            ::supervisor_sdk::bindings::provider::export_provider!(
                ExportsOfPlugin with_types_in ::supervisor_sdk::bindings::provider
            );
        };
    }
}

/// Returns the export of an action.
fn provider(action: Action, path: &syn::Path) -> TokenStream {
    let sdk = quote!(::supervisor_sdk::bindings);
    match action {
        Action::Identify => {
            let wit = quote!(#sdk::identifier::exports::platform::supervisor::identify);
            let call = quote_spanned!(path.span()=> ::supervisor_sdk::expansion::identify(#path));
            quote! {
                const _: () = {
                    struct ExportsOfPlugin;

                    impl #wit::Guest for ExportsOfPlugin {
                        async fn identify() -> ::core::result::Result<(), ::std::string::String> {
                            #call.await
                        }
                    }

                    #sdk::identifier::export_identifier!(
                        ExportsOfPlugin with_types_in #sdk::identifier
                    );
                };
            }
        }
        Action::ProxyRedirector => quote! {
            const _: () = {
                struct ExportsOfPlugin;

                impl ::supervisor_sdk::expansion::ProxyExports for ExportsOfPlugin {
                    type Provider = #path;
                }

                #sdk::proxy::export_proxy!(ExportsOfPlugin with_types_in #sdk::proxy);
            };
        },
        Action::Events => {
            let wit = quote!(#sdk::watcher::exports::platform::supervisor::events);
            // The function may have any name, including that of a variable here.
            let event = Ident::new("event", Span::mixed_site());
            let call =
                quote_spanned!(path.span()=> ::supervisor_sdk::expansion::event(#path, #event));
            quote! {
                const _: () = {
                    struct ExportsOfPlugin;

                    impl #wit::Guest for ExportsOfPlugin {
                        async fn handle(
                            #event: #wit::Event,
                        ) -> ::core::result::Result<#wit::Answer, ::std::string::String> {
                            #call.await
                        }
                    }

                    #sdk::watcher::export_watcher!(
                        ExportsOfPlugin with_types_in #sdk::watcher
                    );
                };
            }
        }
        // Written together with the functions that perform its actions.
        Action::ActionProvider => TokenStream::new(),
        Action::OsUpdate => quote! {
            const _: () = {
                struct ExportsOfPlugin;

                impl ::supervisor_sdk::expansion::OsExports for ExportsOfPlugin {
                    type Provider = #path;
                }

                #sdk::os_updater::export_os_updater!(
                    ExportsOfPlugin with_types_in #sdk::os_updater
                );
            };
        },
        Action::BootConfig => quote! {
            const _: () = {
                struct ExportsOfPlugin;

                impl ::supervisor_sdk::expansion::BootExports for ExportsOfPlugin {
                    type Provider = #path;
                }

                #sdk::boot::export_boot!(ExportsOfPlugin with_types_in #sdk::boot);
            };
        },
    }
}
