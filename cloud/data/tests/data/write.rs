//! Changes of rows: what a body says, what rules make of it, what goes with what, and who is told.

mod at_once;
mod basics;
mod catalogue;
mod cloud;
mod devices;
mod effects;
mod ends;
mod every;
mod fleets;
mod people;
mod quotas;
mod releases;
mod removal;
mod rights;
mod rights_table;
mod secrets;
mod system;
mod uploads;
