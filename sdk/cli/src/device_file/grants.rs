//! What a plugin may use of the device of a device file, and whether the device loads it at all.

use plugin_manifest::{Capability, Manifest};
use plugin_test_host::protocol::text::one_line;

use super::DeviceFile;
use super::dbus::DbusAnswer;
use super::hardware::I2cChip;
use crate::policy;

/// The most bytes of a text from a file that a message repeats.
const SHOWN_TEXT: usize = 256;

impl DeviceFile {
    /// Returns a policy that lets the plugin in the file with this digest, or without one a stock plugin, use everything
    /// that this device has.
    pub(crate) fn policy(&self, manifest: &Manifest, digest: Option<&str>) -> String {
        let mut more = toml::Table::new();
        let names = |names: Vec<&String>| -> toml::Value {
            let names = names.into_iter().cloned().map(toml::Value::from);
            names.collect::<Vec<_>>().into()
        };
        let needs = |capability| manifest.asks_for(capability);
        // A policy that names what the plugin does not ask for is invalid.
        if needs(Capability::Units) {
            more.insert("units".to_owned(), names(self.units.keys().collect()));
        }
        if let Some(cloud) = &self.cloud
            && needs(Capability::Cloud)
        {
            more.insert("records".to_owned(), names(cloud.keys().collect()));
        }
        if needs(Capability::Actions) {
            let own = manifest.actions.iter();
            let own = own.map(|action| toml::Value::from(format!("{}/{action}", manifest.name)));
            more.insert("actions".to_owned(), own.collect::<Vec<_>>().into());
        }
        if needs(Capability::Http) {
            let origins = self.http.keys().filter_map(|request| origin(request));
            more.insert("http".to_owned(), origins.collect::<Vec<_>>().into());
        }
        if needs(Capability::Api) {
            more.insert("api".to_owned(), names(self.api.keys().collect()));
        }
        if needs(Capability::Serial) {
            more.insert("serial".to_owned(), self.serial.clone().into());
        }
        if needs(Capability::Dbus) {
            let grants = self.dbus.iter().map(DbusAnswer::grant);
            more.insert("dbus".to_owned(), grants.collect::<Vec<_>>().into());
        }
        if needs(Capability::Gpio) {
            let grants = self.gpio.iter().map(|(name, line)| line.grant(name));
            more.insert("gpio".to_owned(), grants.collect::<Vec<_>>().into());
        }
        if needs(Capability::I2c) {
            let grants = self.i2c.keys().map(|name| I2cChip::grant(name));
            more.insert("i2c".to_owned(), grants.collect::<Vec<_>>().into());
        }
        more.extend(self.policy.clone());
        policy::that_grants_all(manifest, digest, more)
    }

    /// Says why the plugin with this manifest finds none of the device's files, and what to write; `None` if it asks for
    /// none, or the policy maps a folder.
    pub(crate) fn missing_mapping(&self, manifest: &Manifest, file: &str) -> Option<String> {
        let mappings = self.policy.get("files").and_then(toml::Value::as_array);
        let has_mappings = mappings.is_some_and(|mappings| !mappings.is_empty());
        if has_mappings || !manifest.asks_for(Capability::Files) {
            return None;
        }
        // The folder of the first file: only folders can be mapped.
        let folder = self.files.keys().find_map(|file| {
            let (folder, _) = file.trim_start_matches('/').rsplit_once('/')?;
            Some(folder)
        });
        let folder = one_line(folder.unwrap_or("run/rails"), SHOWN_TEXT);
        let name = folder.rsplit('/').next().unwrap_or_default();
        Some(format!(
            "the plugin asks for `files`, and `{file}` maps no folder of the host into it: add for example `files = [{{ host = \
             {folder:?}, guest = \"/{name}\" }}]` to its table [policy]; the plugin then finds the folder as `/{name}`"
        ))
    }

    /// Says that the plugin with this manifest is for other boards, and what to write; `None` if it is for this one.
    pub(crate) fn other_board(&self, manifest: &Manifest, file: &str) -> Option<String> {
        if manifest.is_for(self.device_type()) {
            return None;
        }
        let boards = manifest.boards.iter();
        let boards: Vec<String> = boards.map(|board| format!("`{board}`")).collect();
        let boards = one_line(&boards.join(", "), SHOWN_TEXT);
        let first = manifest.boards.first().map_or("", String::as_str);
        let example = one_line(&first.replace('*', "1"), SHOWN_TEXT);
        let remedy = match &self.device.device_type {
            None => format!(
                "`{file}` gives the device no type: add for example `type = {example:?}` to its table [device]"
            ),
            Some(device_type) => format!(
                "the device's type is `{}`: change `type` in the table [device] of `{file}`, for example to `type = {example:?}`",
                one_line(device_type, SHOWN_TEXT)
            ),
        };
        Some(format!(
            "the plugin is for the boards {boards} (`boards` of its manifest), and {remedy}"
        ))
    }
}

/// Returns the scheme, host and port of `GET https://api.acme.example/now`.
fn origin(request: &str) -> Option<toml::Value> {
    let (_, url) = request.split_once(' ')?;
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some(format!("{scheme}://{authority}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(text: &str) -> DeviceFile {
        toml::from_str(text).unwrap()
    }

    fn manifest(more: &str) -> Manifest {
        let routes = "routes = [{ method = \"GET\", path = \"/v3/a\" }]";
        let text =
            format!("name = \"a\"\nversion = \"1.0.0\"\ninterface = \"1.4.0\"\n{routes}\n{more}");
        Manifest::parse(&text).unwrap()
    }

    #[test]
    fn a_policy_names_only_what_the_plugin_asks_for_and_its_own_actions() {
        let device = device(
            "[units.\"a.service\"]\n[cloud]\ndevice_tag = []\n[actions]\n\"b/set\" = { text = \"\" }\n",
        );
        let keys = ["units", "records", "actions"];
        let section = |manifest: &Manifest| {
            let policy: toml::Table = device.policy(manifest, None).parse().unwrap();
            policy["plugins"]["a"].clone()
        };
        let nothing = section(&manifest(""));
        assert!(
            keys.iter().all(|key| nothing.get(key).is_none()),
            "{nothing}"
        );
        let everything = section(&manifest(
            "provides = [\"action-provider\"]\nactions = [\"count\"]\ncapabilities = [\
             { name = \"units\", reason = \"r\" }, { name = \"cloud\", reason = \"r\" }, \
             { name = \"actions\", reason = \"r\" }]",
        ));
        for (key, value) in keys.into_iter().zip(["a.service", "device_tag", "a/count"]) {
            assert_eq!(everything[key], toml::Value::from(vec![value]), "{key}");
        }
    }

    #[test]
    fn a_plugin_for_other_boards_is_refused_with_the_line_that_changes_the_type() {
        let boards = "provides = [\"os-update\"]\nboards = [\"acme-*\", \"other\"]\n";
        for (file, more, expected) in [
            ("", "", ""),
            ("[device]\ntype = \"acme-2\"\n", boards, ""),
            (
                "",
                boards,
                "the plugin is for the boards `acme-*`, `other` (`boards` of its manifest), and `d.toml` gives the device no \
                 type: add for example `type = \"acme-1\"` to its table [device]",
            ),
            (
                "[device]\ntype = \"generic\"\n",
                boards,
                "and the device's type is `generic`: change `type` in the table [device] of `d.toml`, for example to `type = \
                 \"acme-1\"`",
            ),
        ] {
            let message = device(file).other_board(&manifest(more), "d.toml");
            let message = message.unwrap_or_default();
            assert!(message.contains(expected), "{expected} in {message}");
            assert_eq!(message.is_empty(), expected.is_empty(), "{message}");
        }
    }

    #[test]
    fn a_plugin_that_asks_for_files_needs_a_mapping() {
        let files = "capabilities = [{ name = \"files\", reason = \"r\" }]\n";
        let mapped = "[policy]\nfiles = [{ host = \"run/rails\", guest = \"/rails\" }]\n";
        for (file, more, expected) in [
            ("", "", ""),
            (mapped, files, ""),
            (
                "",
                files,
                "`d.toml` maps no folder of the host into it: add for example `files = [{ host = \"run/rails\", guest = \"/rails\" \
                 }]` to its table [policy]",
            ),
            (
                "[files]\n\"/etc/acme/door.conf\" = \"\"\n[policy]\nfiles = []\n",
                files,
                "`files = [{ host = \"etc/acme\", guest = \"/acme\" }]`",
            ),
        ] {
            let message = device(file).missing_mapping(&manifest(more), "d.toml");
            let message = message.unwrap_or_default();
            assert!(message.contains(expected), "{expected} in {message}");
            assert_eq!(message.is_empty(), expected.is_empty(), "{message}");
        }
    }
}
