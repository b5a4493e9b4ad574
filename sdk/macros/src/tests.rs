//! The messages of the macro about mistakes, and their places: as tables, with tokens that have lines and columns
//! outside the compiler.

use plugin_manifest::Manifest;
use proc_macro2::TokenStream;

use crate::declare::Declaration;
use crate::package::Package;

mod input;
mod plugin_toml;

/// A crate in its own folder.
struct Crate {
    package: Package,
    _folder: tempfile::TempDir,
}

impl Crate {
    fn new() -> Crate {
        let folder = tempfile::tempdir().unwrap();
        let package = Package {
            name: "acme-rails".to_owned(),
            version: "0.1.0".to_owned(),
            folder: folder.path().to_owned(),
        };
        Crate {
            package,
            _folder: folder,
        }
    }

    fn with_file(self, name: &str, content: impl AsRef<[u8]>) -> Crate {
        std::fs::write(self.package.folder.join(name), content).unwrap();
        self
    }

    fn with_name(mut self, name: &str) -> Crate {
        name.clone_into(&mut self.package.name);
        self
    }

    /// Returns the errors of `plugin! { input }`, each as `line:column: message`. Columns count from 1, as the compiler
    /// shows them; an error about the whole declaration is at `1:1`.
    fn errors(&self, input: &str) -> Vec<String> {
        let tokens: TokenStream = input.parse().unwrap();
        let errors = Declaration::read(tokens, &self.package).outcome.err();
        let errors = errors.into_iter().flatten().map(|error| {
            let start = error.span().start();
            format!("{}:{}: {error}", start.line, start.column + 1)
        });
        errors.collect()
    }

    /// Returns the manifest, and the paths of handlers and providers.
    fn accepted(&self, input: &str) -> (Manifest, String) {
        let tokens: TokenStream = input.parse().unwrap();
        let valid = match Declaration::read(tokens, &self.package).outcome {
            Ok(valid) => valid,
            Err(error) => panic!("{}", error.to_compile_error()),
        };
        // A device can read it, too.
        let manifest = Manifest::parse(&valid.manifest).unwrap();
        assert_eq!(manifest, valid.plugin.manifest);
        let paths = valid.plugin.handlers.iter().chain(&valid.plugin.providers);
        let paths: Vec<String> = paths
            .map(|path| quote::quote!(#path).to_string().replace(' ', ""))
            .collect();
        (manifest, paths.join(" "))
    }
}

/// Compares the errors of each input with the expected ones.
#[track_caller]
fn check_errors(table: &[(&str, &[&str])]) {
    for (input, expected) in table {
        assert_eq!(Crate::new().errors(input), *expected, "{input}");
    }
}
