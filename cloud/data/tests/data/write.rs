//! Changes of rows: bodies, rules, dependent rows, and effects.

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
