//! The resources, each declared once.

mod catalogue;
mod device;
mod fleet;
mod people;
mod release;

use crate::resource::Resource;

/// All of them.
pub(crate) fn all() -> Vec<Resource> {
    [
        people::all(),
        catalogue::all(),
        fleet::all(),
        release::all(),
        device::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
