//! Variables of services and settings of devices on one page: a fleet's or a device's.

use maud::{Markup, html};

use super::kind::KeyValueKind;
use super::table::{AddForm, KeyValueRow, KeyValueTable, section};
use crate::live::LiveFragment;
use crate::session_user::SessionUser;

/// The texts of a page about its variables and settings.
pub(crate) struct VariablesEditor {
    /// The address of the page.
    pub(crate) back: String,
    pub(crate) about_variables: &'static str,
    /// What its settings are called.
    pub(crate) settings: &'static str,
    pub(crate) about_settings: &'static str,
}

/// The possible owners of a new variable or setting.
pub(crate) struct NewOwners {
    /// The owner of variables for all services.
    pub(crate) all_services: (KeyValueKind, i64),
    /// The services, by name.
    pub(crate) services: Vec<(KeyValueKind, i64, String)>,
    pub(crate) setting: (KeyValueKind, i64),
}

impl VariablesEditor {
    /// Returns the parts of the page.
    pub(crate) fn parts(
        &self,
        variables: Vec<KeyValueRow>,
        settings: Vec<KeyValueRow>,
    ) -> [LiveFragment; 2] {
        let variables = KeyValueTable {
            part: "variables",
            caption: "Variables",
            empty: "No variables.",
            back: &self.back,
            rows: variables,
        };
        let settings = KeyValueTable {
            part: "settings",
            caption: self.settings,
            empty: "No settings. The defaults apply.",
            back: &self.back,
            rows: settings,
        };
        [variables.fragment(), settings.fragment()]
    }

    /// The page with these parts, and with forms that add to them if the user may do so.
    pub(crate) fn markup(
        &self,
        user: &SessionUser,
        [variables, settings]: [&LiveFragment; 2],
        owners: Option<NewOwners>,
    ) -> Markup {
        let forms = owners.map(|owners| {
            let (kind, owner) = owners.all_services;
            let mut variable = AddForm::new(&self.back, kind, owner, "All services");
            variable.choices.extend(owners.services);
            let (kind, owner) = owners.setting;
            (variable, AddForm::new(&self.back, kind, owner, ""))
        });
        let (add_variable, add_setting) = forms.unzip();
        let about_variables = html! { (self.about_variables) };
        let about_settings = html! {
            (self.about_settings) " Names begin with "
            code { (user.cloud.configuration.branding.env_prefix) } "."
        };
        html! {
            (section("Variables", Some(&about_variables), variables, add_variable.as_ref()))
            (section(self.settings, Some(&about_settings), settings, add_setting.as_ref()))
        }
    }
}
