//! On/off settings of a device or of all devices of a fleet, shown as switches.

use axum::routing::post;
use maud::{Markup, html};
use resources::Branding;

use super::form::Form;
use super::key_values::{self, KeyValue, KeyValueKind, back};
use super::page_error::{PageError, PageResult};
use super::session_user::SessionUser;
use super::state::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().route("/switch", post(turn))
}

/// An on/off setting.
#[derive(Debug)]
pub(crate) struct Switch {
    /// Its variable without a prefix, and its former names.
    names: &'static [&'static str],
    label: &'static str,
    explained: &'static str,
    /// The value that devices use if it is not set.
    by_default: bool,
}

/// Updates ignore update locks (docs/spec/device.md#locks-override).
pub(crate) const OVERRIDE_LOCKS: Switch = Switch {
    names: &["SUPERVISOR_OVERRIDE_LOCK", "OVERRIDE_LOCK"],
    label: "Override update locks",
    explained: "Updates do not wait for services that hold an update lock.",
    by_default: false,
};

/// The device holds its tunnel.
pub(crate) const REMOTE_ACCESS: Switch = Switch {
    names: &["SUPERVISOR_VPN_CONTROL"],
    label: "Remote access",
    explained: "The device stays connected: you can restart it or make it blink, and it learns of changes at once.",
    by_default: true,
};

const ALL: [&Switch; 2] = [&OVERRIDE_LOCKS, &REMOTE_ACCESS];

/// The position of a switch, and who set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SwitchState {
    Here(bool),
    Fleet(bool),
    Nobody(bool),
}

impl SwitchState {
    fn is_on(self) -> bool {
        match self {
            SwitchState::Here(on) | SwitchState::Fleet(on) | SwitchState::Nobody(on) => on,
        }
    }
}

impl Switch {
    /// Returns the variable without its prefix.
    fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Returns those settings that mean this switch, in order of precedence.
    fn find_settings<'a>(
        &self,
        branding: &Branding,
        settings: &'a [KeyValue],
    ) -> Vec<&'a KeyValue> {
        let named = |name: &str| {
            branding
                .variables(name)
                .filter_map(|full| settings.iter().find(|pair| pair.name == full))
                .collect::<Vec<_>>()
        };
        self.names.iter().flat_map(|name| named(name)).collect()
    }

    fn stand(&self, branding: &Branding, own: &[KeyValue], fleet: &[KeyValue]) -> SwitchState {
        let first = |settings| {
            self.find_settings(branding, settings)
                .first()
                .and_then(|it| flag(it.value.as_deref()?))
        };
        match (first(own), first(fleet)) {
            (Some(on), _) => SwitchState::Here(on),
            (None, Some(on)) => SwitchState::Fleet(on),
            (None, None) => SwitchState::Nobody(self.by_default),
        }
    }

    /// The switch of a device or fleet (`kind` of its settings, and `owner`), according to its settings and those of
    /// its fleet. It belongs in a live part of the page at `at`.
    pub(crate) fn markup(
        &self,
        branding: &Branding,
        (kind, owner): (KeyValueKind, i64),
        own: &[KeyValue],
        fleet: &[KeyValue],
        at: &str,
    ) -> Markup {
        let stand = self.stand(branding, own, fleet);
        let on = stand.is_on();
        let id = self.name().to_lowercase();
        html! {
            form.switch method="post" action="/dashboard/switch" hx-post="/dashboard/switch" hx-target="find .answer"
                hx-sync="this:drop" {
                input type="hidden" name="back" value=(at) id={ "back-" (id) };
                input type="hidden" name="setting" value=(self.name()) id={ "name-" (id) };
                input type="hidden" name="of" value=(kind.resource()) id={ "of-" (id) };
                input type="hidden" name="owner" value=(owner) id={ "owner-" (id) };
                // The id contains the state, so that the element of the other state is not reused.
                input type="hidden" name="on" value=(if on { "no" } else { "yes" }) id={ "to-" (id) "-" (on) };
                button.toggle type="submit" role="switch" aria-checked=(on) aria-label=(self.label)
                    aria-describedby={ "about-" (id) } id={ "turn-" (id) } {
                    span.knob aria-hidden="true" {}
                }
                div {
                    strong { (self.label) ": " (if on { "on" } else { "off" }) }
                    small id={ "about-" (id) } {
                        (self.explained) " "
                        @match (stand, kind) {
                            (SwitchState::Here(_), KeyValueKind::DeviceSetting) => "Set for this device.",
                            (SwitchState::Here(_), _) => "Set for the whole fleet.",
                            (SwitchState::Fleet(_), _) => "Set by its fleet.",
                            (SwitchState::Nobody(_), _) => "Not set: the device's default applies.",
                        }
                    }
                    div.answer role="status" id={ "turned-" (id) } data-keep {}
                }
            }
        }
    }
}

/// Parses a value as devices do.
fn flag(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => Some(true),
        "false" | "0" | "off" | "no" | "" => Some(false),
        _ => None,
    }
}

/// `POST /dashboard/switch`
async fn turn(user: SessionUser, form: Form) -> PageResult {
    let name = form.text("setting");
    let switch = ALL.into_iter().find(|switch| switch.name() == name);
    let switch = switch.ok_or_else(PageError::nothing_here)?;
    let kind = [KeyValueKind::DeviceSetting, KeyValueKind::FleetSetting]
        .into_iter()
        .find(|kind| kind.resource() == form.text("of"))
        .ok_or_else(PageError::nothing_here)?;
    let owner = form.number("owner")?;
    let on = form.text("on") == "yes";
    let branding = &user.cloud.configuration.branding;
    let own = key_values::list(&user, kind, owner).await?;
    let name = format!("{}{}", branding.env_prefix, switch.name());
    let value = if on { "true" } else { "false" };
    key_values::set(&user, kind, owner, &name, value).await?;
    // Settings under its other names would contradict it.
    for other in switch.find_settings(branding, &own) {
        if other.name != name {
            key_values::remove(&user, kind, other.id).await?;
        }
    }
    let word = format!("{} is {} now.", switch.label, if on { "on" } else { "off" });
    Ok(user.done(&word, back(&form)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(&str, &str)]) -> Vec<KeyValue> {
        let pair = |(name, value): &(&str, &str)| KeyValue {
            id: 1,
            name: (*name).to_owned(),
            value: Some((*value).to_owned()),
            is_secret: false,
        };
        of.iter().map(pair).collect()
    }

    #[test]
    fn a_device_decides_before_its_fleet_and_the_current_name_before_older_ones() {
        let branding = Branding::default();
        let stand = |own: &[(&str, &str)], fleet: &[(&str, &str)]| {
            OVERRIDE_LOCKS.stand(&branding, &settings(own), &settings(fleet))
        };
        let name = "PLATFORM_SUPERVISOR_OVERRIDE_LOCK";
        assert_eq!(stand(&[], &[]), SwitchState::Nobody(false));
        assert_eq!(stand(&[], &[(name, "1")]), SwitchState::Fleet(true));
        assert_eq!(
            stand(&[(name, "0")], &[(name, "1")]),
            SwitchState::Here(false)
        );
        let older = "LEGACY_SUPERVISOR_OVERRIDE_LOCK";
        assert_eq!(
            stand(&[(older, "0"), (name, "1")], &[]),
            SwitchState::Here(true)
        );
        assert_eq!(
            stand(&[("PLATFORM_OVERRIDE_LOCK", "on")], &[]),
            SwitchState::Here(true)
        );
        assert_eq!(
            stand(&[("SOMETHING_ELSE", "1")], &[]),
            SwitchState::Nobody(false)
        );
        let none: &[KeyValue] = &[];
        assert!(REMOTE_ACCESS.stand(&branding, none, none).is_on());
    }
}
