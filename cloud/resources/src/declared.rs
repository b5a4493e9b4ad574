//! The resources, each declared once.

mod audit;
mod catalogue;
mod device;
mod fleet;
mod history;
mod image;
mod invite;
mod organization;
mod people;
mod release;
mod service;
mod tag;
mod team;
mod variable;

use crate::resource::Resource;

/// Returns all of them.
pub(crate) fn all() -> Vec<Resource> {
    [
        people::all(),
        organization::all(),
        catalogue::all(),
        team::all(),
        fleet::all(),
        invite::all(),
        release::all(),
        service::all(),
        image::all(),
        device::all(),
        tag::all(),
        variable::all(),
        history::all(),
        audit::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
