//! What devices report about their plugins, as pages read it. It is not trusted: a device may send anything.

use std::fmt;

use http::StatusCode;
use maud::{Markup, html};
use serde::de::{DeserializeOwned, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::show::badge;

/// The maximum number of characters of one text that are shown.
const TEXT_SHOWN: usize = 400;
/// The maximum number of plugins of one device that are read.
pub(crate) const PLUGINS_READ: usize = 200;
/// The maximum number of routes, grants and so on of one plugin that are shown, and of characters of one.
pub(crate) const WORDS_SHOWN: usize = 64;

/// The answer to `GET /v3/plugins` of a device, as far as it is shown. A device of another version may omit any of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PluginList {
    pub(crate) allow_unpinned: bool,
    pub(crate) policy_error: Option<String>,
    #[serde(deserialize_with = "first_plugins")]
    pub(crate) plugins: Vec<Plugin>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Plugin {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) interface: Option<String>,
    pub(crate) state: String,
    pub(crate) refused: Option<String>,
    #[serde(flatten)]
    pub(crate) about: PluginMetadata,
    #[serde(flatten)]
    pub(crate) trust: Trust,
    #[serde(flatten)]
    pub(crate) rights: Rights,
    #[serde(flatten)]
    pub(crate) calls: Calls,
}

impl Plugin {
    /// Its state in words.
    pub(crate) fn state(&self) -> Markup {
        let (kind, word) = match self.state.as_str() {
            "running" if self.refused.is_some() => ("wary", "Older version running"),
            "running" => ("good", "Running"),
            "loading" => ("busy", "Loading"),
            "other-board" => ("none", "For other boards"),
            "refused" => ("bad", "Refused"),
            _ => ("none", "Unknown"),
        };
        badge(kind, word)
    }

    /// Who vouches for the file in use; a device does not say it of others.
    pub(crate) fn trust(&self) -> Markup {
        match &self.trust.signed_by {
            Some(key) => html! { "Key " (shown(key)) },
            None if self.trust.unpinned => badge("wary", "Nobody"),
            None if self.state == "running" => html! { "Its digest" },
            None => html! { span.none { "Not in use" } },
        }
    }
}

/// What a plugin says about itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PluginMetadata {
    pub(crate) description: Option<String>,
    pub(crate) vendor: Option<String>,
    pub(crate) licence: Option<String>,
    pub(crate) homepage: Option<String>,
}

/// Who vouches for its file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Trust {
    pub(crate) digest: String,
    pub(crate) unpinned: bool,
    pub(crate) signed_by: Option<String>,
}

/// Its routes, what it provides, its events and actions, and what it is granted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Rights {
    pub(crate) routes: Vec<PluginRoute>,
    pub(crate) provides: Vec<String>,
    pub(crate) events: Vec<String>,
    pub(crate) actions: Vec<String>,
    pub(crate) grants: Vec<String>,
}

/// Statistics of its calls since the supervisor started.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Calls {
    #[serde(rename = "calls")]
    pub(crate) count: u64,
    pub(crate) failures: u64,
    pub(crate) last_error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PluginRoute {
    pub(crate) method: String,
    pub(crate) path: String,
}

/// Reads an answer of a device.
///
/// # Errors
/// The reason, for people, why it is not what was asked for.
pub(crate) fn read<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<T, String> {
    if !status.is_success() {
        let status = status.as_u16();
        return Err(format!(
            "The device answered {status}. Its supervisor may be too old for this."
        ));
    }
    serde_json::from_slice(body).map_err(|_| "The device's answer could not be read.".to_owned())
}

/// Reads the first [`PLUGINS_READ`] plugins of a list and skips the others: three bytes of an answer can be a plugin,
/// which takes hundreds of bytes of memory.
fn first_plugins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Plugin>, D::Error> {
    struct FirstPlugins;
    impl<'de> Visitor<'de> for FirstPlugins {
        type Value = Vec<Plugin>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list of plugins")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Plugin>, A::Error> {
            let mut plugins = Vec::new();
            while plugins.len() < PLUGINS_READ {
                match list.next_element()? {
                    Some(plugin) => plugins.push(plugin),
                    None => return Ok(plugins),
                }
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(plugins)
        }
    }
    deserializer.deserialize_seq(FirstPlugins)
}

/// Returns whether a text can be the name of a plugin, and part of an address.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(fits)
}

/// Returns text of a device, cut to the length that is shown, without characters that would change the direction of the
/// text around it or are not for reading.
pub(crate) fn shown(text: &str) -> String {
    cut(text, TEXT_SHOWN)
}

/// Returns the first line of a device's text, as [`shown`] does.
pub(crate) fn first_line(text: &str) -> String {
    shown(text.trim_start().lines().next().unwrap_or_default())
}

/// Returns names that a device reports (of grants, say) in one line.
pub(crate) fn words(words: &[String]) -> String {
    let words = words.iter().take(WORDS_SHOWN);
    let words: Vec<String> = words.map(|word| cut(word, WORDS_SHOWN)).collect();
    words.join(", ")
}

fn cut(text: &str, length: usize) -> String {
    let is_unreadable = |letter: char| match letter {
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        letter => letter.is_control() && !matches!(letter, '\n' | '\t'),
    };
    let letters = text.chars().filter(|letter| !is_unreadable(*letter));
    letters.take(length).collect()
}

/// An address that a plugin chose: a link if it is that of a web page, otherwise text. The whole address is shown, so a
/// link leads where it says.
pub(crate) fn homepage(address: &str) -> Markup {
    if is_web_page(address) {
        html! { a href=(address) rel="noopener nofollow" { (address) } }
    } else {
        html! { (shown(address)) }
    }
}

/// Returns whether an address is `http` or `https` with a plain host. Letters beyond ASCII could look like others, and a
/// name before an `@` like the host.
fn is_web_page(address: &str) -> bool {
    let rest = address
        .strip_prefix("https://")
        .or_else(|| address.strip_prefix("http://"));
    let Some(rest) = rest else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    address.len() <= TEXT_SHOWN
        && address
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        && host.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '[')
        && host.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_is_a_link_only_if_it_leads_to_the_web_page_that_it_shows() {
        for address in [
            "https://acme.example",
            "http://acme.example:8080/rails?a=1&b=%20#top",
            "https://[2001:db8::1]/",
        ] {
            let link = homepage(address).into_string();
            let expected = address.replace('&', "&amp;");
            assert_eq!(
                link,
                format!("<a href=\"{expected}\" rel=\"noopener nofollow\">{expected}</a>")
            );
        }
        for address in [
            "",
            "acme.example",
            "javascript:alert(1)",
            "JavaScript:alert(1)//https://acme.example",
            " javascript:alert(1)",
            "java\nscript:alert(1)",
            "data:text/html,<script>alert(1)</script>",
            "//acme.example",
            "/dashboard/account",
            "https:acme.example",
            "https://",
            "https:///acme.example",
            "https://acme.example@evil.example/",
            "https://acme.example\\@evil.example/",
            "https://acm\u{435}.example/",
            "https://acme.example/ onclick=alert(1)",
            "https://acme.example/\u{202e}",
            "https://acme.example/\\evil.example",
            "HTTPS://acme.example",
        ] {
            let text = homepage(address).into_string();
            assert!(!text.contains("<a") && !text.contains("href"), "{text}");
        }
        let long = format!("https://acme.example/{}", "x".repeat(1000));
        let text = homepage(&long).into_string();
        assert_eq!(text.len(), TEXT_SHOWN);
        let quoted = homepage("https://acme.example/\"><script>").into_string();
        assert!(!quoted.contains("<script>"), "{quoted}");
    }

    #[test]
    fn text_of_a_device_is_bounded_and_stays_in_its_place() {
        assert_eq!(shown("a\u{202e}b\u{0}\u{200f}c\nd\r"), "abc\nd");
        assert_eq!(shown("a\u{2066}b\u{2069}c\u{200e}d\u{202a}e"), "abcde");
        assert_eq!(first_line("\n one\ntwo"), "one");
        assert_eq!(first_line(""), "");
        assert_eq!(shown(&"ü".repeat(1000)).chars().count(), TEXT_SHOWN);
        let grants = vec!["x".repeat(1000); 1000];
        assert!(words(&grants).len() < 5000);
        assert_eq!(
            words(&["store".to_owned(), "leds".to_owned()]),
            "store, leds"
        );
    }

    #[test]
    fn a_list_of_plugins_is_read_so_far_and_no_further() {
        let many = format!("{{\"plugins\":[{}{{}}]}}", "{},".repeat(100_000));
        let list: PluginList = read(StatusCode::OK, many.as_bytes()).expect("a list");
        assert_eq!(list.plugins.len(), PLUGINS_READ);
        assert!(list.plugins.capacity() < 2 * PLUGINS_READ);
        let few = json!({ "plugins": [{ "name": "tags" }] }).to_string();
        let list: PluginList = read(StatusCode::OK, few.as_bytes()).expect("a list");
        assert_eq!(list.plugins.len(), 1);
        let deep = format!("{{\"plugins\":{}", "[".repeat(100_000));
        for (status, body) in [
            (StatusCode::NOT_FOUND, "{}"),
            (StatusCode::OK, ""),
            (StatusCode::OK, "[]x"),
            (StatusCode::OK, "{\"plugins\":{}}"),
            (StatusCode::OK, &deep),
        ] {
            assert!(read::<PluginList>(status, body.as_bytes()).is_err());
        }
    }

    #[test]
    fn nobody_vouches_for_a_file_that_is_not_in_use() {
        let trust = |fields: serde_json::Value| {
            let plugin: Plugin = serde_json::from_value(fields).expect("a plugin");
            plugin.trust().into_string()
        };
        assert_eq!(trust(json!({ "state": "running" })), "Its digest");
        let key = json!({ "state": "running", "signedBy": "acme" });
        assert_eq!(trust(key), "Key acme");
        let refused = trust(json!({ "state": "refused" }));
        assert!(refused.contains("Not in use"), "{refused}");
        let nobody = trust(json!({ "state": "running", "unpinned": true }));
        assert!(nobody.contains("Nobody"), "{nobody}");
    }

    #[test]
    fn the_name_of_a_plugin_is_one_that_an_address_can_contain() {
        let longest = "a".repeat(63);
        for name in ["a", "acme-rails", "0", &longest] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(64);
        for name in ["", "Acme", "a_b", "a/b", "a.b", "ä", "a b", &long] {
            assert!(!is_name(name), "{name}");
        }
    }
}
