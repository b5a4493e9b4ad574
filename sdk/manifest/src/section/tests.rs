use proptest::prelude::*;

use super::*;
use crate::manifest::tests::GOOD;

/// Returns a custom section with this name and content, as bytes of a file.
fn custom(name: &str, content: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    append_section(&mut section, name, content);
    section
}

/// Returns a component with a core module inside.
fn around(module: &[u8]) -> Vec<u8> {
    let mut file = COMPONENT.to_vec();
    file.push(1);
    let size = module.len();
    file.extend([
        u8::try_from(size & 0x7f).unwrap() | 0x80,
        u8::try_from(size >> 7).unwrap(),
    ]);
    file.extend(module);
    file
}

#[test]
fn the_section_is_found_at_any_depth_and_only_once() {
    let section = custom(SECTION, GOOD.as_bytes());
    let top = [COMPONENT, &section].concat();
    let nested = around(&[MODULE, &section].concat());
    assert_eq!(
        Manifest::from_wasm(&top).unwrap(),
        Manifest::from_wasm(&nested).unwrap()
    );

    for (file, expected) in [
        (
            [&top[..], &section].concat(),
            "it has 2 sections `platform:manifest`",
        ),
        (
            [&nested[..], &section].concat(),
            "it has 2 sections `platform:manifest`",
        ),
        (
            [COMPONENT, &custom("other", b"")].concat(),
            "it has no section `platform:manifest`",
        ),
        (
            [COMPONENT, &custom(SECTION, &[b'#'; SIZE + 1])].concat(),
            "its manifest has 65537 bytes",
        ),
        (
            [COMPONENT, &custom(SECTION, &[0xff])].concat(),
            "its manifest is not UTF-8",
        ),
        (
            b"GIF89a".to_vec(),
            "it is not WebAssembly: a component begins with the bytes `\\0asm`; use the file `NAME.wasm` that",
        ),
        (vec![0; 40], "it is not WebAssembly"),
        (Vec::new(), "it is empty; copy or build it again"),
        (b"\0as".to_vec(), "it ends within its first 8 bytes"),
        (MODULE.to_vec(), "it is a core module and not a component"),
        (
            b"\0asm\x0e\0\x01\0".to_vec(),
            "it is WebAssembly of another version, but must be a component; build it for the target",
        ),
        (
            top[..top.len() - 1].to_vec(),
            "it is cut off or damaged at byte 11: ",
        ),
    ] {
        let error = Manifest::from_wasm(&file).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = Manifest::from_wasm(&[COMPONENT, &bytes].concat());
    }
}
