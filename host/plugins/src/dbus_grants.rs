//! The methods on the system bus that the policy lets a plugin call.
//!
//! ```toml
//! [[plugins.NAME.dbus]]
//! service = "org.freedesktop.hostname1"
//! paths = ["/org/freedesktop/hostname1"]    # `/org/acme/*`: all objects below that one
//! members = ["org.freedesktop.hostname1.*", "org.freedesktop.DBus.Properties.Get"]
//! ```

use serde::Deserialize;

/// Services with the objects and methods that are granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct DbusGrants(Vec<DbusGrant>);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct DbusGrant {
    service: String,
    paths: Vec<String>,
    /// Interface, dot and method; `*` in place of the method means all methods of the interface.
    members: Vec<String>,
}

impl DbusGrants {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether this method of this object may be called.
    pub(crate) fn cover(&self, service: &str, path: &str, interface: &str, member: &str) -> bool {
        self.0.iter().any(|grant| {
            grant.service == service
                && grant.paths.iter().any(|granted| covers_path(granted, path))
                && grant
                    .members
                    .iter()
                    .any(|granted| covers_member(granted, interface, member))
        })
    }

    /// Checks the grants as written in the policy.
    ///
    /// # Errors
    /// What cannot be granted, and what to write instead.
    pub(crate) fn check(&self) -> Result<(), String> {
        for grant in &self.0 {
            let service = &grant.service;
            if !service.contains('.') || service.contains(is_no_part_of_a_name) {
                return Err(format!(
                    "`dbus` has the service `{service}`: write the name of one, such as `org.freedesktop.hostname1`"
                ));
            }
            if grant.paths.is_empty() || grant.members.is_empty() {
                return Err(format!(
                    "`dbus` names the service `{service}` without `paths` or without `members`, so nothing of it is granted"
                ));
            }
            let is_path = |path: &&String| {
                let path = path.strip_suffix("/*").unwrap_or(path);
                path.is_empty() || (path.starts_with('/') && !path.contains(is_no_part_of_a_path))
            };
            if let Some(path) = grant.paths.iter().find(|path| !is_path(path)) {
                return Err(format!(
                    "`dbus` has the path `{path}`: write an object such as `/org/acme/Meter`, or `/org/acme/*` for all below it"
                ));
            }
            let is_member = |member: &&String| {
                member.rsplit_once('.').is_some_and(|(interface, member)| {
                    interface.contains('.')
                        && !interface.contains(is_no_part_of_a_name)
                        && !member.is_empty()
                        && (member == "*" || !member.contains(is_no_part_of_a_name))
                })
            };
            if let Some(member) = grant.members.iter().find(|member| !is_member(member)) {
                return Err(format!(
                    "`dbus` has the member `{member}`: write an interface and a method, such as \
                     `org.freedesktop.DBus.Properties.Get`, or `*` in place of the method"
                ));
            }
        }
        Ok(())
    }
}

fn is_no_part_of_a_name(character: char) -> bool {
    !(character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-'))
}

fn is_no_part_of_a_path(character: char) -> bool {
    !(character.is_ascii_alphanumeric() || matches!(character, '/' | '_'))
}

fn covers_path(granted: &str, path: &str) -> bool {
    match granted.strip_suffix("/*") {
        Some(above) => path
            .strip_prefix(above)
            .is_some_and(|below| below.len() > 1 && below.starts_with('/')),
        None => granted == path,
    }
}

fn covers_member(granted: &str, interface: &str, member: &str) -> bool {
    granted
        .rsplit_once('.')
        .is_some_and(|(of, name)| of == interface && (name == "*" || name == member))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(text: &str) -> DbusGrants {
        let table: toml::Table = text.parse().unwrap();
        table["dbus"].clone().try_into().unwrap()
    }

    #[test]
    fn a_grant_covers_only_what_the_policy_names() {
        let grants = grants(
            r#"
            [[dbus]]
            service = "org.acme.Meter"
            paths = ["/org/acme/Meter", "/org/acme/rails/*"]
            members = ["org.acme.Meter.Read", "org.acme.Rail.*"]
            "#,
        );
        assert_eq!(grants.check(), Ok(()));
        let meter = "/org/acme/Meter";
        for (service, path, interface, member, expected) in [
            ("org.acme.Meter", meter, "org.acme.Meter", "Read", true),
            ("org.acme.Meter", meter, "org.acme.Meter", "Reset", false),
            ("org.acme.Meter", meter, "org.acme.Rail", "Anything", true),
            (
                "org.acme.Meter",
                meter,
                "org.acme.Rail.Deeper",
                "Anything",
                false,
            ),
            (
                "org.acme.Meter",
                "/org/acme/rails/1",
                "org.acme.Rail",
                "On",
                true,
            ),
            (
                "org.acme.Meter",
                "/org/acme/rails/1/x",
                "org.acme.Rail",
                "On",
                true,
            ),
            (
                "org.acme.Meter",
                "/org/acme/rails",
                "org.acme.Rail",
                "On",
                false,
            ),
            (
                "org.acme.Meter",
                "/org/acme/rails/",
                "org.acme.Rail",
                "On",
                false,
            ),
            (
                "org.acme.Meter",
                "/org/acme/railsX",
                "org.acme.Rail",
                "On",
                false,
            ),
            (
                "org.acme.Meter",
                "/org/acme/Meter/x",
                "org.acme.Meter",
                "Read",
                false,
            ),
            ("org.acme.Meter2", meter, "org.acme.Meter", "Read", false),
            ("org.acme.Meter", meter, "org.acme.Meter.Read", "", false),
            ("org.acme.Meter", meter, "org.acme", "Meter.Read", false),
        ] {
            let covered = grants.cover(service, path, interface, member);
            assert_eq!(covered, expected, "{service} {path} {interface} {member}");
        }
    }

    #[test]
    fn invalid_grants_are_named() {
        let grant = |service: &str, path: &str, member: &str| {
            let grants = grants(&format!(
                "[[dbus]]\nservice = \"{service}\"\npaths = [{path}]\nmembers = [{member}]\n"
            ));
            grants.check().unwrap_err()
        };
        let (path, member) = ("\"/org/acme\"", "\"org.acme.Meter.Read\"");
        for (service, path, member, expected) in [
            ("*", path, member, "the service `*`"),
            ("org.acme.*", path, member, "the service `org.acme.*`"),
            (
                "org.acme.Meter",
                "",
                member,
                "without `paths` or without `members`",
            ),
            (
                "org.acme.Meter",
                path,
                "",
                "without `paths` or without `members`",
            ),
            (
                "org.acme.Meter",
                "\"org/acme\"",
                member,
                "the path `org/acme`",
            ),
            (
                "org.acme.Meter",
                "\"/org/*/x\"",
                member,
                "the path `/org/*/x`",
            ),
            ("org.acme.Meter", path, "\"Read\"", "the member `Read`"),
            ("org.acme.Meter", path, "\"*\"", "the member `*`"),
            (
                "org.acme.Meter",
                path,
                "\"org.acme.*.Read\"",
                "the member `org.acme.*.Read`",
            ),
        ] {
            let error = grant(service, path, member);
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(
            grants("[[dbus]]\nservice = \"a.b\"\npaths = [\"/*\"]\nmembers = [\"a.b.*\"]").check(),
            Ok(())
        );
    }
}
