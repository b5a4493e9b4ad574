//! The SDK that a component was built with, as the component's custom section `producers` records it: in the field `sdk`
//! of the convention that compilers follow
//! (<https://github.com/WebAssembly/tool-conventions/blob/main/ProducersSection.md>).
//!
//! The build adds the record, to what compilers have recorded. `inspect` reads it, also in files of strangers: there it is
//! a claim, its length is bounded, and it is shown without control characters.
//!
//! The version of this tool is not recorded, because every update of the tool would then change the digests of components
//! whose sources and SDK have not changed.

use std::ops::Range;

use anyhow::{Context as _, Result, anyhow, ensure};
use plugin_manifest::COMPONENT;
use plugin_test_host::protocol::text::one_line;
use wasm_encoder::{ProducersField, ProducersSection, Section as _};
use wasmparser::{BinaryReader, Parser, Payload, ProducersSectionReader};

/// The name of the section.
const SECTION: &str = "producers";
/// The field for SDKs.
const FIELD: &str = "sdk";
/// The name of the SDK in that field.
pub(crate) const SDK: &str = "supervisor-sdk";
/// The version of the SDKs in this tool, and of the one that `new` puts into a project in Rust.
pub(crate) const SDK_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The maximum length of a section that is read, in bytes. Those of compilers have a few hundred.
const LONGEST_SECTION: usize = 64 << 10;
/// The most bytes of a version that are shown.
const SHOWN_VERSION: usize = 64;
/// The most bytes of the reason why a section is damaged that are shown.
const SHOWN_REASON: usize = 128;

/// The place of the section in a component.
struct SectionPlace {
    /// With the section's number and length.
    section: Range<usize>,
    content: Range<usize>,
}

/// A field of the section: its name, and tools with their versions.
type Field<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// Returns the version of the SDK that a component claims to be built with; `None` if it claims none.
///
/// # Errors
/// The section cannot be read, or is too long.
pub(crate) fn sdk_version(wasm: &[u8]) -> Result<Option<String>> {
    let Some(place) = place(wasm)? else {
        return Ok(None);
    };
    let fields = fields(content(wasm, &place)?)?;
    let mut tools = fields
        .into_iter()
        .filter(|(field, _)| *field == FIELD)
        .flat_map(|(_, tools)| tools);
    let version = tools.find(|(name, _)| *name == SDK);
    Ok(version.map(|(_, version)| one_line(version, SHOWN_VERSION)))
}

/// Records the version of the SDK in a component.
///
/// # Errors
/// What compilers have recorded there cannot be read.
pub(crate) fn record_sdk(wasm: &mut Vec<u8>, version: &str) -> Result<()> {
    let place = place(wasm)?;
    let recorded = match &place {
        Some(place) => fields(content(wasm, place)?)?,
        None => Vec::new(),
    };
    let mut section = ProducersSection::new();
    let mut sdks = ProducersField::new();
    for (name, tools) in recorded {
        let mut field = ProducersField::new();
        let into = if name == FIELD { &mut sdks } else { &mut field };
        for (tool, version) in tools {
            if (name, tool) != (FIELD, SDK) {
                into.value(tool, version);
            }
        }
        if name != FIELD {
            section.field(name, &field);
        }
    }
    sdks.value(SDK, version);
    section.field(FIELD, &sdks);
    let mut encoded = Vec::new();
    section.append_to(&mut encoded);
    if let Some(place) = place {
        wasm.drain(place.section);
    }
    wasm.extend(encoded);
    Ok(())
}

/// Finds the section of the component itself: each module inside has one of its own.
fn place(wasm: &[u8]) -> Result<Option<SectionPlace>> {
    let mut depth = 0_u32;
    let mut end = COMPONENT.len();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.context("the component is damaged")?;
        if depth == 0
            && let Some((_, range)) = payload.as_section()
        {
            if let Payload::CustomSection(section) = &payload
                && section.name() == SECTION
            {
                return Ok(Some(SectionPlace {
                    section: end..range.end,
                    content: section.data_offset()..range.end,
                }));
            }
            end = range.end;
        }
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(None)
}

fn content<'a>(wasm: &'a [u8], place: &SectionPlace) -> Result<&'a [u8]> {
    let content = wasm.get(place.content.clone());
    content.with_context(|| format!("its section `{SECTION}` ends after the file"))
}

fn fields(content: &[u8]) -> Result<Vec<Field<'_>>> {
    let length = content.len();
    ensure!(
        length <= LONGEST_SECTION,
        "its section `{SECTION}` has {length} bytes, more than {LONGEST_SECTION}"
    );
    read_fields(content).map_err(|error| {
        // The reason may repeat the name of a field.
        let reason = one_line(error.message(), SHOWN_REASON);
        anyhow!("its section `{SECTION}` is damaged: {reason}")
    })
}

fn read_fields(content: &[u8]) -> wasmparser::Result<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    for field in ProducersSectionReader::new(BinaryReader::new(content, 0))? {
        let field = field?;
        let mut tools = Vec::new();
        for tool in field.values {
            let tool = tool?;
            tools.push((tool.name, tool.version));
        }
        fields.push((field.name, tools));
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use plugin_manifest::append_section;

    use super::*;

    /// Returns a section with these fields.
    fn section(fields: &[(&str, &[(&str, &str)])]) -> Vec<u8> {
        let mut section = ProducersSection::new();
        for (name, tools) in fields {
            let mut field = ProducersField::new();
            for (tool, version) in *tools {
                field.value(tool, version);
            }
            section.field(name, &field);
        }
        let mut bytes = Vec::new();
        section.append_to(&mut bytes);
        bytes
    }

    /// Returns a component with a module inside that has a record of its own, and then with these sections.
    fn component(sections: &[u8]) -> Vec<u8> {
        let module = wat::parse_str("(component (core module))").unwrap();
        let mut nested = Vec::new();
        // The module is the only section.
        let inner = [&module[10..], &section(&[(FIELD, &[(SDK, "9.9.9")])])].concat();
        nested.extend(&module[..8]);
        nested.push(1);
        nested.push(u8::try_from(inner.len()).unwrap());
        nested.extend(inner);
        [nested.as_slice(), sections].concat()
    }

    fn version(wasm: &[u8]) -> Option<String> {
        sdk_version(wasm).unwrap()
    }

    #[test]
    fn the_sdk_is_recorded_beside_what_compilers_have_recorded_and_once() {
        let rustc: (&str, &[_]) = (
            "processed-by",
            &[("rustc", "1.95.0"), ("wit-component", "1")],
        );
        let wasi: (&str, &[_]) = (FIELD, &[("wasi-sdk", "30")]);
        let own: (&str, &[_]) = (FIELD, &[("wasi-sdk", "30"), (SDK, "0.1.0")]);
        let mut name = Vec::new();
        append_section(&mut name, "other", b"after it");
        for (before, expected) in [
            (vec![], vec![(FIELD, &[(SDK, "0.1.0")] as &[_])]),
            (vec![rustc], vec![rustc, (FIELD, &[(SDK, "0.1.0")])]),
            (vec![wasi, rustc], vec![rustc, own]),
            (
                vec![rustc, (FIELD, &[(SDK, "0.0.9")])],
                vec![rustc, (FIELD, &[(SDK, "0.1.0")])],
            ),
        ] {
            let written = if before.is_empty() {
                Vec::new()
            } else {
                section(&before)
            };
            let mut wasm = component(&[written, name.clone()].concat());
            record_sdk(&mut wasm, "0.1.0").unwrap();
            // The rest of the component is unchanged.
            let after = component(&[name.clone(), section(&expected)].concat());
            assert_eq!(wasm, after, "{before:?}");
            assert_eq!(version(&wasm).as_deref(), Some("0.1.0"));
            // A build of the same component makes the same file.
            record_sdk(&mut wasm, "0.1.0").unwrap();
            assert_eq!(wasm, after);
        }
    }

    #[test]
    fn the_sdks_in_this_tool_have_its_version() {
        let javascript: serde_json::Value =
            serde_json::from_str(include_str!("../../javascript/package.json")).unwrap();
        assert_eq!(javascript["version"], SDK_VERSION);
        let python: toml::Table = include_str!("../../python/pyproject.toml").parse().unwrap();
        assert_eq!(python["project"]["version"].as_str(), Some(SDK_VERSION));
    }

    #[test]
    fn a_component_without_a_record_claims_no_version() {
        let others = section(&[
            ("processed-by", &[(SDK, "1")]),
            (FIELD, &[("wasi-sdk", "1")]),
        ]);
        for sections in [Vec::new(), others] {
            assert_eq!(version(&component(&sections)), None);
        }
    }

    #[test]
    fn a_record_of_a_stranger_is_bounded_and_shown_in_one_line() {
        let claim = |version: &str| component(&section(&[(FIELD, &[(SDK, version)])]));
        let steering = claim("1\u{1b}[2J\n\u{202e}2");
        assert_eq!(version(&steering).unwrap(), "1\\u{1b}[2J\\n\\u{202e}2");
        let long = version(&claim(&"1".repeat(60_000))).unwrap();
        assert_eq!(long.len(), SHOWN_VERSION + "...".len());

        let content = |content: &[u8]| {
            let mut section = Vec::new();
            append_section(&mut section, SECTION, content);
            component(&section)
        };
        for (content, expected) in [
            (
                vec![0; LONGEST_SECTION + 1],
                "has 65537 bytes, more than 65536",
            ),
            // Four billion fields, and a field with four billion tools.
            (b"\xff\xff\xff\xff\x0f".to_vec(), "is damaged"),
            (b"\x01\x03sdk\xff\xff\xff\xff\x0f".to_vec(), "is damaged"),
            (b"\x01\x03sdk\x01\x02\xff\xff\x011".to_vec(), "is damaged"),
            (b"\x01\x05other\x00".to_vec(), "is damaged"),
        ]
        .map(|(bytes, expected)| (content(&bytes), expected))
        {
            let error = format!("{:#}", sdk_version(&content).unwrap_err());
            assert!(error.contains(expected), "{expected}: {error}");
            assert!(record_sdk(&mut content.clone(), "0.1.0").is_err());
        }
        let field = format!("\u{1b}[2J{}", "x".repeat(1000));
        let field = component(&section(&[(&field, &[])]));
        let error = format!("{:#}", sdk_version(&field).unwrap_err());
        assert!(!error.contains('\u{1b}') && error.len() < 256, "{error}");
    }
}
