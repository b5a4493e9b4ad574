//! Fields that a device's plugins add to its report. All text comes from them, or from anybody who has the device's
//! key.

use maud::{Markup, html};
use serde::Deserialize;

use super::tabs::Device;
use crate::live::LiveFragment;
use crate::page_error::PageResult;
use crate::session_user::SessionUser;
use crate::show::{self, table};

/// A field, as the data API has it.
#[derive(Deserialize)]
struct PluginField {
    id: i64,
    plugin: String,
    name: String,
    value: String,
    value_type: String,
    unit: Option<String>,
    modified_at: String,
}

/// The maximum number of fields that are shown, which is more than a device may have.
const MOST: usize = 100;

/// The current fields; empty if there are none.
pub(super) async fn part(user: &SessionUser, device: &Device) -> PageResult<LiveFragment> {
    let query = format!(
        "$select=id,plugin,name,value,value_type,unit,modified_at&$filter=device eq {}\
         &$orderby=plugin asc,name asc&$top={MOST}",
        device.id
    );
    let fields: Vec<PluginField> = user.rows("/device_plugin_field", &query).await?;
    let rows = fields.iter().map(row);
    let columns = ["Field", "Value", "Plugin", "Changed"];
    // Browsers ignore an event without text: an open page would keep the last field.
    let markup = html! {
        div {
            @if !fields.is_empty() {
                section.stack aria-labelledby="plugin-fields" {
                    h2 id="plugin-fields" { "Reported by plugins" }
                    (table("Reported by plugins", &columns, None, rows))
                }
            }
        }
    };
    Ok(LiveFragment::new("plugin-fields", markup))
}

fn row(field: &PluginField) -> Markup {
    html! {
        tr id={ "plugin-field-" (field.id) } {
            th scope="row" { (field.name) }
            td data-label="Value" {
                @match (field.value_type.as_str(), field.value.as_str()) {
                    ("boolean", "true") => "Yes",
                    ("boolean", _) => "No",
                    (_, "") => span.none { "Empty" },
                    (_, value) => (value),
                }
                @if let Some(unit) = &field.unit { " " (unit) }
            }
            td data-label="Plugin" { (field.plugin) }
            td data-label="Changed" { (show::time(Some(&field.modified_at))) }
        }
    }
}
