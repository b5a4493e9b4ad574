//! The macro `plugin!` of the crate `supervisor-sdk`, where it is documented.
//!
//! It reads its input (`syntax`) and `plugin.toml` (`project`) into the same parts (`part`), checks them by the rules
//! of the device (`check`) and writes the manifest and the component's exports (`expand`). It reports all mistakes at
//! once, each at its place (`problems`).

mod check;
mod declare;
mod expand;
mod package;
mod part;
mod problems;
mod project;
mod syntax;

#[cfg(test)]
mod tests;

use package::Package;
use proc_macro2::{Span, TokenStream};

/// Declares a plugin; see the crate `supervisor-sdk`.
#[proc_macro]
pub fn plugin(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let expansion = match Package::from_env() {
        Ok(package) => expand::expand(input.into(), &package),
        Err(message) => syn::Error::new(Span::call_site(), message).into_compile_error(),
    };
    TokenStream::into(expansion)
}
