//! The list of stock plugins in a layout: the entries of `packaging/stock-plugins.toml`, with the digests of the built
//! files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::cargo;
use crate::crates::component_file;

/// The name of the list, in the repository and in a layout.
const LIST: &str = "stock-plugins.toml";

/// Writes the list of `plugins` into the layout in `folder`, which already contains their files.
///
/// # Errors
/// If the repository's list names other plugins than these.
pub(crate) fn write(folder: &Path, plugins: &[String]) -> Result<()> {
    let source = cargo::repository().join("packaging").join(LIST);
    let text = fs::read_to_string(&source)
        .with_context(|| format!("failed to read `{}`", source.display()))?;
    let digest = |plugin: &str| -> Result<String> {
        let file = folder.join("plugins").join(component_file(plugin));
        let wasm =
            fs::read(&file).with_context(|| format!("failed to read `{}`", file.display()))?;
        Ok(hex::encode(Sha256::digest(wasm)))
    };
    let list = pinned(&text, plugins, digest)
        .with_context(|| format!("`{}` cannot be used", source.display()))?;
    let (file, beside) = (folder.join(LIST), folder.join(format!("{LIST}.new")));
    fs::write(&beside, list)
        .and_then(|()| fs::rename(&beside, &file))
        .with_context(|| format!("failed to write `{}`", file.display()))
}

/// Returns the list `text` with the digest of each plugin.
fn pinned(
    text: &str,
    plugins: &[String],
    digest: impl Fn(&str) -> Result<String>,
) -> Result<String> {
    let mut list: toml::Table = text.parse()?;
    let sections = list
        .get_mut("plugins")
        .and_then(toml::Value::as_table_mut)
        .context("it has no table `plugins`")?;
    if let Some(stranger) = sections.keys().find(|name| !plugins.contains(name)) {
        bail!("it lists `{stranger}`, which is not a crate in `plugins/`");
    }
    for plugin in plugins {
        let section = sections
            .get_mut(plugin)
            .and_then(toml::Value::as_table_mut)
            .with_context(|| format!("it does not list `{plugin}`: add [plugins.{plugin}]"))?;
        section.insert("sha256".to_owned(), vec![digest(plugin)?].into());
    }
    let list = toml::to_string(&list)?;
    Ok(format!(
        "# Written by `cargo xtask build`: the plugins of this layout, and which files they are.\n\n{list}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugins(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_plugin_is_listed_with_its_digest() {
        let list = pinned(
            "[plugins.b]\n[plugins.a]",
            &plugins(&["a", "b"]),
            |plugin| Ok(format!("digest of {plugin}")),
        );
        let list: toml::Table = list.unwrap().parse().unwrap();
        let expected = "[plugins]\na.sha256 = [\"digest of a\"]\nb.sha256 = [\"digest of b\"]";
        assert_eq!(list, expected.parse::<toml::Table>().unwrap());
    }

    #[test]
    fn a_plugin_that_is_not_listed_and_one_that_is_gone_are_named() {
        let digest = |_: &str| -> Result<String> { Ok(String::new()) };
        let missing = pinned("[plugins.a]", &plugins(&["a", "b"]), digest).unwrap_err();
        assert!(
            missing.to_string().contains("does not list `b`"),
            "{missing}"
        );
        let stranger = pinned("[plugins.a]\n[plugins.b]", &plugins(&["a"]), digest).unwrap_err();
        assert!(stranger.to_string().contains("lists `b`"), "{stranger}");
    }
}
