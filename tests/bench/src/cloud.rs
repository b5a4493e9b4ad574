//! How many requests the fleet cloud handles in a second and how much memory it uses, on both
//! databases.

mod data_api;
mod fleets;
mod place;
mod polls;
mod reports;
mod scene;
mod walk;

use anyhow::Result;

use crate::figures::Section;
use place::Kind;

/// Sections, in the order of the page.
pub(crate) const SECTIONS: [&str; 5] = ["data", "polls", "reports", "push", "fleets"];

/// Measures one of [`SECTIONS`]; `large` includes all sizes.
pub(crate) async fn measure(section: &str, large: bool) -> Result<Section> {
    let kinds = Kind::all();
    match section {
        "data" => data_api::measure(&kinds).await,
        "polls" => polls::measure(&kinds, large).await,
        "reports" => reports::measure(&kinds, large).await,
        "push" => fleets::measure_push(&kinds).await,
        _ => fleets::measure(&kinds, large).await,
    }
}
