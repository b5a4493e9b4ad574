//! A plugin's declaration of itself, for all programs that read or write it: the device's host, the macro
//! `plugin!` and the tool `supervisor-plugin`. All of them check a manifest by the same rules, so a manifest
//! that a device would refuse is already refused when the plugin is built.
//!
//! - [`Manifest`] is the content of the custom section `platform:manifest` of a component, as TOML.
//! - [`Project`] is the file `plugin.toml` that an author writes; a manifest is created from it.

#![warn(missing_docs)]

mod action;
mod bounded_text;
mod capability;
mod core_routes;
mod event_kind;
mod form_error;
mod glob;
mod language;
mod limits;
mod manifest;
mod name;
mod pattern;
mod plugin_metadata;
mod project;
mod project_file;
mod route;
mod schedule;
#[cfg(feature = "component")]
mod section;
mod stock_plugins;

pub use action::Action;
pub use bounded_text::check_text;
pub use capability::{Capability, NeededCapability};
pub use core_routes::{CORE_ROUTES, core_route};
pub use event_kind::EventKind;
pub use form_error::{FormError, line_and_column};
pub use glob::glob;
pub use language::Language;
pub use limits::{LIMITS, LimitError, LimitRange, WrittenLimit, WrittenLimits, limit_names};
pub use manifest::{COUNT, INTERFACE, Manifest, ManifestError, Need, SCHEDULES, SIZE};
pub use name::{check_action_name, check_name, check_schedule_name};
pub use pattern::{Pattern, PatternError, match_path};
pub use plugin_metadata::PluginMetadata;
pub use project::{Build, Project, ProjectError, ProjectErrors};
pub use project_file::{ProjectFile, WrittenBuild};
pub use route::{Route, allowed_methods, parse_method, route_method};
pub use schedule::{LONGEST_INTERVAL, SHORTEST_INTERVAL, Schedule, ScheduleError};
#[cfg(feature = "component")]
pub use section::{COMPONENT, DESCRIPTION, SECTION, append_section, check_beginning, section};
pub use stock_plugins::{STOCK_PLUGINS, STOCK_ROUTES, is_of_stock_plugins, is_stock_plugin};
pub use toml::Spanned;
