//! Endpoint families and hardware actions as sandboxed WebAssembly components.
//!
//! [`Plugins`] is the interface for the rest of the supervisor: it loads the plugins in the plugin folders, reloads
//! them when they change, finds the plugin that serves a request ([`Plugins::find`]), and makes the call
//! ([`Plugins::call`]). A plugin gets what its manifest asks for and the policy grants, within its limits; whatever it
//! does, its caller gets a clear error and others are not affected.
//!
//! The caller has already checked the key and removed it from the request: no plugin sees one.

#![warn(missing_docs)]

mod actions;
mod admission;
mod answer_body;
mod api_grants;
mod assembly;
mod blocking;
mod boards;
mod body;
mod boot_config;
mod bounds;
mod call;
mod capability;
mod claims;
mod config;
mod confinement_rule;
mod dbus_grants;
mod embed;
mod events;
mod failure;
mod file_record;
mod file_with_signature;
mod gpio_grants;
mod grant;
mod grants;
mod hardware;
mod hardware_names;
mod holdings;
mod http_grants;
mod i2c_grants;
mod identify;
mod install_check;
mod installed_plugins;
mod kept;
mod keys;
mod limits;
mod load_context;
mod loaded;
mod loader;
mod log_lines;
mod missing_export;
mod newest;
mod os_update;
mod owners;
mod pending_writes;
mod pins;
mod placement;
mod plugin_context;
mod plugin_fields;
mod plugin_host;
mod plugin_metrics;
mod plugin_shares;
mod plugins;
mod policy;
mod policy_refusals;
mod provision;
mod proxy;
mod recent_lines;
mod refusal;
mod reload;
mod request_body;
mod rollback;
mod route_grants;
mod route_match;
mod routes;
mod section_merge;
mod settled_file;
mod signature;
mod signers;
mod source_file;
mod stock;
mod table;
mod trust;
mod unavailable_service;
mod watch;

pub use body::{Body, BodyError};
pub use boot_config::{BootComparison, BootConfigError, BootSetting};
pub use bounds::{HTTP_REQUESTS, memory_of_board};
pub use config::{
    AddressScope, ApiError, ApiResponse, AppLocks, Cloud, CloudRefusal, Condition, DEFAULT_SLOTS,
    DataError, Device, DeviceApi, HeldLocks, HostName, HostNameError, HostServices, HttpClient,
    HttpError, HttpResponse, Identity, LocksError, NoCloud, OutgoingRequest, PluginApiRequest,
    PluginData, PluginsConfig, ValueChange,
};
pub use confinement_rule::ConfinementRule;
pub use device_types::PluginMetricValue;
pub use embed::{EmbedError, embed_signature, write_signed};
pub use failure::FAILURES_FOR_AUTHORS;
pub use grant::{GrantError, PolicyAddition};
pub use grants::refused_imports;
pub use install_check::{InstallCheckError, InstallDevice, check_install};
pub use installed_plugins::InstalledPlugins;
pub use limits::Limits;
pub use os_update::{OsCall, OsStatus, OsUpdateError};
pub use owners::OwnerError;
pub use placement::{Placement, PlacementError, install_folder};
pub use plugin_manifest::{
    Action, Capability, INTERFACE, Manifest, ManifestError, Need, Pattern, PatternError, Route,
    SECTION,
};
pub use plugin_protocol::{CallerScope, EventCall};
pub use plugin_values::{
    GateVerdict, InstalledRelease, PendingUpdate, PluginEvent, Postponement, ServiceChange,
    TargetProgress,
};
pub use plugins::{PluginUpload, Plugins, StartError, UNPINNED};
pub use policy::{PolicyError, policy_text};
pub use policy_refusals::policy_refusals;
pub use rollback::{Rollback, RollbackError, RollbackFolders, rollback};
pub use route_match::{RouteLookup, RouteMatch};
pub use signers::{
    SignatureCheck, SignaturePlace, check_signatures, embedded_signature, signature_place,
    signed_content,
};
pub use source_file::{SourceError, SourceFile};
pub use trust::{TrustError, trust_lines};
pub use unavailable_service::UnavailableService;
