//! The file of a component: text of WebAssembly, made into what somebody would put into a plugin folder.
//!
//! A file that begins with `(component` or `(module` is complete. Any other file is the content of a core module: the
//! rest is in `prelude.wat`, and the usual tools turn both into a component. Names are written short:
//! `(export "handle")` is what the host calls, `(import "timer" "sleep" …)` a function of `wit/timer.wit`, and an
//! import of `"exports"` belongs to the handler, such as `[task-return]handle`.
//!
//! In the comment:
//! - `world: NAME`: a world of `wit/worlds.wit`; the default is `endpoint`;
//! - `manifest: LINE`: a line of the manifest, which replaces the one with that key or is added (`name`, `version`,
//!   `interface`, `routes`); `none` for a file without a manifest; `grants: NAME` asks for a capability, and the policy
//!   grants it;
//! - `section: NAME CONTENT`: an additional custom section;
//! - `cut: N`: the file ends after this many bytes; `noise: N`: this many bytes of garbage at its end.

use anyhow::{Context as _, Result};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::folder;

use crate::attack::Attack;
use crate::repeats::written_out;

const PRELUDE: &str = include_str!("prelude.wat");
/// The beginning of a part of the prelude that a component may replace. The part's name is what it exports.
const PART: &str = ";; part: ";
const HEADER: usize = 8;

/// The interface that components are built for.
pub struct Interface {
    resolve: Resolve,
    package: wit_parser::PackageId,
    version: String,
    names: Vec<String>,
}

impl Interface {
    /// Reads it from `wit/`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read() -> Result<Self> {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(folder("../../wit"))?;
        let found = resolve.packages.get(package).context("no package")?;
        let version = found
            .name
            .version
            .as_ref()
            .context("no version")?
            .to_string();
        let names = found.interfaces.keys().cloned().collect();
        Ok(Interface {
            resolve,
            package,
            version,
            names,
        })
    }

    /// Returns the file of this attack.
    ///
    /// # Errors
    /// If its text is not WebAssembly.
    pub fn build(&self, attack: &Attack) -> Result<Vec<u8>> {
        let text = self.with_full_names(&written_out(&attack.text)?);
        let is_whole = ["(component", "(module"]
            .iter()
            .any(|start| text.trim_start().starts_with(start));
        let mut file = if is_whole {
            wat::parse_str(&text)?
        } else {
            self.component(&text, attack.first("world").unwrap_or("endpoint"))?
        };
        for section in attack.all("section") {
            let (name, content) = section.split_once(' ').unwrap_or((section, ""));
            insert_section(&mut file, name, content);
        }
        if let Some(manifest) = self.manifest(attack) {
            insert_section(&mut file, "platform:manifest", &manifest);
        }
        let noise = (0..attack.number("noise", 0)?).map(noise);
        file.extend(noise);
        file.truncate(attack.number("cut", usize::MAX)?);
        Ok(file)
    }

    fn component(&self, text: &str, world: &str) -> Result<Vec<u8>> {
        let mut whole = format!("(module\n{text}\n");
        for part in PRELUDE.split(PART) {
            let (name, content) = part.split_once('\n').unwrap_or((part, ""));
            if !text.contains(&format!("(export \"{name}\")")) {
                whole.push_str(content);
            }
        }
        whole.push(')');
        let mut module = wat::parse_str(&whole)?;
        let world = self.resolve.select_world(&[self.package], Some(world))?;
        embed_component_metadata(&mut module, &self.resolve, world, StringEncoding::UTF8)?;
        // Errors are left for the host to find.
        ComponentEncoder::default()
            .validate(false)
            .module(&module)?
            .encode()
    }

    fn with_full_names(&self, text: &str) -> String {
        let version = &self.version;
        let function = |interface: &str, function: &str| {
            format!("platform:supervisor/{interface}@{version}#{function}")
        };
        let handle = function("handler", "handle");
        let mut text = text
            .replace("@VERSION", &format!("@{version}"))
            .replace("(export \"handle\")", &format!("(export \"{handle}\")"))
            .replace(
                "(export \"async-handle\")",
                &format!("(export \"[async-lift]{handle}\")"),
            )
            .replace(
                "(export \"callback\")",
                &format!("(export \"[callback][async-lift]{handle}\")"),
            )
            .replace(
                "(export \"identify\")",
                &format!("(export \"{}\")", function("identify", "identify")),
            )
            .replace(
                "(import \"exports\"",
                &format!("(import \"[export]platform:supervisor/handler@{version}\""),
            );
        for name in &self.names {
            text = text.replace(
                &format!("(import \"{name}\""),
                &format!("(import \"platform:supervisor/{name}@{version}\""),
            );
        }
        text
    }

    fn manifest(&self, attack: &Attack) -> Option<String> {
        let (name, version) = (&attack.name, &self.version);
        let overrides: Vec<_> = attack.all("manifest").collect();
        if overrides == ["none"] {
            return None;
        }
        let needs: Vec<_> = attack
            .all("grants")
            .map(|name| format!("{{ name = \"{name}\", reason = \"harm\" }}"))
            .collect();
        let usual = [
            format!("name = \"{name}\""),
            "version = \"1.0.0\"".to_owned(),
            format!("interface = \"{version}\""),
            format!("capabilities = [{}]", needs.join(", ")),
            format!(
                "routes = [{{ method = \"GET\", path = \"/v3/{name}\" }}, {{ method = \"POST\", path = \"/v3/{name}\" }}]"
            ),
        ];
        let key = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        let mut lines: Vec<_> = usual
            .into_iter()
            .filter(|line| overrides.iter().all(|other| key(other) != key(line)))
            .collect();
        lines.extend(overrides.iter().map(|line| (*line).to_owned()));
        Some(lines.join("\n"))
    }
}

/// Inserts a custom section after the file's header, so that `cut` cuts off something else.
fn insert_section(file: &mut Vec<u8>, name: &str, content: &str) {
    let mut section = Vec::new();
    leb128(&mut section, name.len());
    section.extend(name.as_bytes());
    section.extend(content.as_bytes());
    let mut whole = vec![0];
    leb128(&mut whole, section.len());
    whole.extend(section);
    let at = HEADER.min(file.len());
    file.splice(at..at, whole);
}

fn leb128(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The same each time, and without a pattern that a parser could recognize.
fn noise(place: usize) -> u8 {
    let mixed = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}
