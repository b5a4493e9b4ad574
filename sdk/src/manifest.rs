//! Writes a plugin's manifest while the plugin is compiled. The macro [`crate::plugin!`] calls this.
//!
//! The manifest is TOML in the custom section `platform:manifest`. All of it is `const`: a plugin
//! carries no code for it, and a mistake in it is a compile error.

/// The version of the interface package that this SDK speaks, as `wit/types.wit` states it.
pub const INTERFACE: &str = "1.3.0";

/// The name of a capability in `capabilities`, which is an identifier: `_` stands for the `-` of the name. Empty for
/// what only a policy gives.
macro_rules! identifier {
    (policy $module:ident) => {
        ""
    };
    ($origin:ident $module:ident) => {
        stringify!($module)
    };
}

/// The same as a part of a sentence.
macro_rules! listed {
    (policy $module:ident) => {
        ""
    };
    ($origin:ident $module:ident) => {
        concat!("`", stringify!($module), "`, ")
    };
}

macro_rules! capabilities {
    ($(
        $(#[$doc:meta])*
        $origin:ident $capability:ident $module:ident $name:literal $([$($import:literal),*])? may $may:literal;
    )*) => {
        /// What may stand in `capabilities`.
        const CAPABILITIES: &[&str] = &[$(identifier!($origin $module),)*];

        /// Fails the compilation if `name` is not a capability.
        pub const fn check_capability(name: &str) {
            assert!(
                contains(CAPABILITIES, name),
                concat!(
                    "no such capability: use ",
                    $(listed!($origin $module),)*
                    "or, without one, `log`, `config`, `timer` and `caller`"
                )
            );
        }
    };
}

include!("../../wit/capabilities.rs");

/// What may stand in `limits`.
const LIMITS: &[&str] = &["memory_mib", "cpu_ms", "wall_ms", "body_kib", "concurrency"];
/// The methods that a route may have. HEAD and OPTIONS are the host's.
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];

/// A piece of the manifest's text.
pub enum Part {
    /// Text that is used unchanged.
    Raw(&'static str),
    /// A string that must be quoted.
    Quoted(&'static str),
    /// An identifier that stands for a name, with `-` for each `_`.
    Hyphenated(&'static str),
}

/// Computes the length of `parts` in bytes.
#[must_use]
pub const fn length(parts: &[Part]) -> usize {
    let mut count = Output::<0> { bytes: [], at: 0 };
    count.parts(parts);
    count.at
}

/// Joins `parts` into a text; `N` is their [`length`].
#[must_use]
pub const fn text<const N: usize>(parts: &[Part]) -> [u8; N] {
    let mut output = Output {
        bytes: [0; N],
        at: 0,
    };
    output.parts(parts);
    output.bytes
}

/// Writes as far as there is room, and counts everything.
struct Output<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Output<N> {
    const fn parts(&mut self, parts: &[Part]) {
        let mut at = 0;
        while at < parts.len() {
            match &parts[at] {
                Part::Raw(text) => self.raw(text.as_bytes()),
                Part::Quoted(text) => self.quoted(text.as_bytes()),
                Part::Hyphenated(text) => self.hyphenated(text.as_bytes()),
            }
            at += 1;
        }
    }

    const fn raw(&mut self, text: &[u8]) {
        let mut at = 0;
        while at < text.len() {
            self.byte(text[at]);
            at += 1;
        }
    }

    const fn hyphenated(&mut self, text: &[u8]) {
        let mut at = 0;
        while at < text.len() {
            self.byte(if text[at] == b'_' { b'-' } else { text[at] });
            at += 1;
        }
    }

    /// A TOML basic string: quotes, backslashes and control characters are escaped.
    const fn quoted(&mut self, text: &[u8]) {
        self.byte(b'"');
        let mut at = 0;
        while at < text.len() {
            match text[at] {
                byte @ (b'"' | b'\\') => {
                    self.byte(b'\\');
                    self.byte(byte);
                }
                byte @ (0..=0x1f | 0x7f) => {
                    self.raw(b"\\u00");
                    self.byte(b"0123456789abcdef"[(byte >> 4) as usize]);
                    self.byte(b"0123456789abcdef"[(byte & 15) as usize]);
                }
                byte => self.byte(byte),
            }
            at += 1;
        }
        self.byte(b'"');
    }

    const fn byte(&mut self, byte: u8) {
        if self.at < N {
            self.bytes[self.at] = byte;
        }
        self.at += 1;
    }
}

/// Fails the compilation if `name` is not a limit.
pub const fn check_limit(name: &str) {
    assert!(
        contains(LIMITS, name),
        "no such limit: use `memory_mib`, `cpu_ms`, `wall_ms`, `body_kib` and `concurrency`"
    );
}

/// Fails the compilation if a route could never be called.
pub const fn check_route(method: &str, path: &str) {
    assert!(
        contains(METHODS, method),
        "no such method: a route's method is GET, POST, PUT, PATCH or DELETE"
    );
    let path = path.as_bytes();
    let mut at = 0;
    let mut previous = 0;
    while at < path.len() {
        let byte = path[at];
        assert!(
            at > 0 || byte == b'/',
            "a route begins with `/`, for example \"/v3/things/:name\""
        );
        assert!(
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/' | b':'),
            "a route consists of letters, digits and `-._~`, with `/` between segments and `:` before a name"
        );
        assert!(
            byte != b':' || previous == b'/',
            "a `:name` is a whole segment of its own"
        );
        assert!(
            byte != b'/' || (previous != b'/' && previous != b':'),
            "a route has no empty segments"
        );
        previous = byte;
        at += 1;
    }
    assert!(
        at > 1 && previous != b'/' && previous != b':',
        "a route ends with a segment, for example \"/v3/things/:name\""
    );
}

const fn contains(names: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < names.len() {
        if equal(names[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[Part]) -> String {
        let bytes = text::<256>(parts);
        String::from_utf8(bytes[..length(parts)].to_vec()).unwrap()
    }

    #[test]
    fn quoted_text_survives_a_toml_parser() {
        let texts = [
            "plain",
            "say \"hi\"",
            "back\\slash",
            "two\nlines\t\u{1}\u{7f}",
            "\u{e9}\u{1f600}",
        ];
        for text in texts {
            let line = written(&[Part::Raw("reason = "), Part::Quoted(text), Part::Raw("\n")]);
            let table: toml::Table = line.parse().unwrap();
            assert_eq!(table["reason"].as_str(), Some(text), "{line}");
        }
    }

    #[test]
    fn the_interface_is_the_one_of_the_wit_package() {
        let types = include_str!("../../wit/types.wit");
        let line = format!("package platform:supervisor@{INTERFACE};");
        assert!(types.contains(&line));
    }

    #[test]
    fn routes_that_could_never_match_are_refused() {
        let refused = |method: &'static str, path: &'static str| {
            std::panic::catch_unwind(|| check_route(method, path)).is_err()
        };
        assert!(!refused("GET", "/v3/things/:name"));
        assert!(!refused("DELETE", "/v2/local/device-info"));
        assert!(refused("HEAD", "/v3/things"));
        let paths = [
            "", "/", "v3", "/a//b", "/a/", "/a b", "/a?b", "/\u{e9}", "/a:b", "/a/:", "/:/b",
            "/a/::b",
        ];
        for path in paths {
            assert!(refused("GET", path), "{path}");
        }
    }
}
