//! Settings of devices that are on or off, for a device or all of a fleet, as switches.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use maud::{Markup, html};
use resources::Branding;

use super::form::Form;
use super::pairs::{self, Kind, Pair, back};
use super::problem::Problem;
use super::visitor::Visitor;
use crate::cloud::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/switch", post(turn))
}

/// A setting that is on or off.
#[derive(Debug)]
pub(crate) struct Switch {
    /// Its variable without a prefix, and names that it had before.
    names: &'static [&'static str],
    label: &'static str,
    explained: &'static str,
    /// What devices take where nobody says.
    by_default: bool,
}

/// Updates pass over update locks (device behaviour 3.7).
pub(crate) const OVERRIDE_LOCKS: Switch = Switch {
    names: &["SUPERVISOR_OVERRIDE_LOCK", "OVERRIDE_LOCK"],
    label: "Override update locks",
    explained: "Updates no longer wait for services that hold an update lock.",
    by_default: false,
};

/// The device holds its tunnel.
pub(crate) const REMOTE_ACCESS: Switch = Switch {
    names: &["SUPERVISOR_VPN_CONTROL"],
    label: "Remote access",
    explained: "The device stays connected: it can be asked to restart or blink, and hears of changes at once.",
    by_default: true,
};

const ALL: [&Switch; 2] = [&OVERRIDE_LOCKS, &REMOTE_ACCESS];

/// Who decides how a switch stands, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Here(bool),
    Fleet(bool),
    Nobody(bool),
}

impl Stand {
    fn is_on(self) -> bool {
        match self {
            Stand::Here(on) | Stand::Fleet(on) | Stand::Nobody(on) => on,
        }
    }
}

impl Switch {
    /// The variable without its prefix.
    fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Those of some settings that mean this switch, the one that counts first.
    fn of<'a>(&self, branding: &Branding, settings: &'a [Pair]) -> Vec<&'a Pair> {
        let named = |name: &str| {
            branding
                .variables(name)
                .filter_map(|full| settings.iter().find(|pair| pair.name == full))
                .collect::<Vec<_>>()
        };
        self.names.iter().flat_map(|name| named(name)).collect()
    }

    fn stand(&self, branding: &Branding, own: &[Pair], fleet: &[Pair]) -> Stand {
        let first = |settings| {
            self.of(branding, settings)
                .first()
                .and_then(|it| flag(it.value.as_deref()?))
        };
        match (first(own), first(fleet)) {
            (Some(on), _) => Stand::Here(on),
            (None, Some(on)) => Stand::Fleet(on),
            (None, None) => Stand::Nobody(self.by_default),
        }
    }

    /// The switch of a device or fleet (`kind` is of which settings, `owner` whose), by its settings and those of
    /// its fleet. It belongs into a part that follows what happens, on the page at `at`.
    pub(crate) fn markup(
        &self,
        branding: &Branding,
        (kind, owner): (Kind, i64),
        own: &[Pair],
        fleet: &[Pair],
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
                input type="hidden" name="of" value=(kind.resource().0) id={ "of-" (id) };
                input type="hidden" name="owner" value=(owner) id={ "owner-" (id) };
                // The id tells of the state: what was drawn for the other one is not kept.
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
                            (Stand::Here(_), Kind::DeviceSetting) => "Set for this device.",
                            (Stand::Here(_), _) => "Set for the whole fleet.",
                            (Stand::Fleet(_), _) => "As its fleet.",
                            (Stand::Nobody(_), _) => "As devices do by themselves.",
                        }
                    }
                    div.answer role="status" id={ "turned-" (id) } data-keep {}
                }
            }
        }
    }
}

/// As devices read it.
fn flag(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => Some(true),
        "false" | "0" | "off" | "no" | "" => Some(false),
        _ => None,
    }
}

/// `POST /dashboard/switch`
async fn turn(
    State(cloud): State<Shared>,
    visitor: Visitor,
    form: Form,
) -> Result<Response, Problem> {
    let name = form.text("setting");
    let switch = ALL.into_iter().find(|switch| switch.name() == name);
    let switch = switch.ok_or_else(Problem::nothing_here)?;
    let kind = [Kind::DeviceSetting, Kind::FleetSetting]
        .into_iter()
        .find(|kind| kind.resource().0 == form.text("of"))
        .ok_or_else(Problem::nothing_here)?;
    let owner = form.number("owner")?;
    let on = form.text("on") == "yes";
    let branding = &cloud.configuration.branding;
    let own = pairs::pairs(&cloud, &visitor, kind, owner).await?;
    let name = format!("{}{}", branding.env_prefix, switch.name());
    let value = if on { "true" } else { "false" };
    pairs::set(&cloud, &visitor, kind, owner, &name, value).await?;
    // What stands there under other names of the setting would contradict it.
    for other in switch.of(branding, &own) {
        if other.name != name {
            pairs::remove(&cloud, &visitor, kind, other.id).await?;
        }
    }
    let word = format!("{} is {} now.", switch.label, if on { "on" } else { "off" });
    Ok(visitor.done(&word, back(&form)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(&str, &str)]) -> Vec<Pair> {
        let pair = |(name, value): &(&str, &str)| Pair {
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
        assert_eq!(stand(&[], &[]), Stand::Nobody(false));
        assert_eq!(stand(&[], &[(name, "1")]), Stand::Fleet(true));
        assert_eq!(stand(&[(name, "0")], &[(name, "1")]), Stand::Here(false));
        let older = "LEGACY_SUPERVISOR_OVERRIDE_LOCK";
        assert_eq!(stand(&[(older, "0"), (name, "1")], &[]), Stand::Here(true));
        assert_eq!(
            stand(&[("PLATFORM_OVERRIDE_LOCK", "on")], &[]),
            Stand::Here(true)
        );
        assert_eq!(stand(&[("SOMETHING_ELSE", "1")], &[]), Stand::Nobody(false));
        let none: &[Pair] = &[];
        assert!(REMOTE_ACCESS.stand(&branding, none, none).is_on());
    }
}
