//! The languages that plugins are written in.

use std::str::FromStr as _;

use serde::Deserialize;

/// A language that plugins are written in.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Language {
    /// Rust, with the crate `supervisor-sdk`.
    #[default]
    Rust,
    /// C.
    C,
    /// Go.
    Go,
    /// JavaScript.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// Python.
    Python,
    /// None: another toolchain builds the component.
    Component,
}

impl Language {
    /// Finds a language by its name or by the extension of its files.
    ///
    /// # Errors
    /// The names of all languages.
    pub fn find(name: &str) -> Result<Language, String> {
        let name = name.to_ascii_lowercase();
        let short = match name.as_str() {
            "rs" => Language::Rust,
            "js" => Language::JavaScript,
            "ts" => Language::TypeScript,
            "py" => Language::Python,
            "golang" => Language::Go,
            name => {
                return Language::from_str(name).map_err(|_| {
                    format!(
                        "there is no language `{name}`; choose rust, c, go, javascript, typescript or python, or give \
                         what another toolchain has built by `--component FILE`"
                    )
                });
            }
        };
        Ok(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_name_and_ending() {
        for (name, expected) in [
            ("rust", Language::Rust),
            ("JS", Language::JavaScript),
            ("ts", Language::TypeScript),
            ("python", Language::Python),
        ] {
            assert_eq!(Language::find(name), Ok(expected));
        }
        assert!(Language::find("cobol").unwrap_err().contains("python"));
    }
}
