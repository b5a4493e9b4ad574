//! Calls from the host to plugins that provide an action.

use serde::{Deserialize, Serialize};

use crate::{
    Action, BootComparison, BootSetting, EventAnswer, EventCall, OsCall, OsStatus, ProxyCall,
    ProxyError, ProxyState,
};

/// A call to the function of an action that a plugin exports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionCall {
    /// `wit/identify.wit`
    Identify,
    /// `wit/proxy-redirector.wit`
    Proxy(ProxyCall),
    /// `wit/boot-config.wit`
    BootConfig(BootCall),
    /// `wit/os-update.wit`
    Os(OsCall),
    /// `wit/events.wit`
    Event(EventCall),
    /// `wit/action-provider.wit`
    Own(OwnCall),
}

impl ActionCall {
    /// Returns the action whose function is called.
    #[must_use]
    pub fn action(&self) -> Action {
        match self {
            ActionCall::Identify => Action::Identify,
            ActionCall::Proxy(_) => Action::ProxyRedirector,
            ActionCall::BootConfig(_) => Action::BootConfig,
            ActionCall::Os(_) => Action::OsUpdate,
            ActionCall::Event(_) => Action::Events,
            ActionCall::Own(_) => Action::ActionProvider,
        }
    }
}

/// A provider's answer: of the same kind as the call if the provider keeps to the rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionAnswer {
    /// `wit/identify.wit`
    Identify(Result<(), String>),
    /// `wit/proxy-redirector.wit`
    Proxy(Result<ProxyAnswer, ProxyError>),
    /// `wit/boot-config.wit`
    BootConfig(Result<BootAnswer, String>),
    /// `wit/os-update.wit`
    Os(Result<OsAnswer, String>),
    /// `wit/events.wit`
    Event(Result<EventAnswer, String>),
    /// `wit/action-provider.wit`
    Own(Result<Vec<u8>, String>),
}

/// A call to one of a plugin's own actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCall {
    /// A name from the plugin's manifest.
    pub name: String,
    /// The action's input.
    #[serde(with = "serde_bytes")]
    pub input: Vec<u8>,
}

/// The answer of such a function if it does not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProxyAnswer {
    /// The answer to [`ProxyCall::Get`].
    State(ProxyState),
    /// The answer to [`ProxyCall::NoProxy`].
    Addresses(#[serde(with = "crate::bounded_list")] Vec<String>),
    /// The answer to all other calls.
    Done,
}

/// A function of `wit/boot-config.wit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the functions of `wit/boot-config.wit`, by their names"
)]
pub enum BootCall {
    Get,
    Compare(Vec<BootSetting>),
    Set(Vec<BootSetting>),
}

/// The answer of such a function if it does not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BootAnswer {
    /// The answer to [`BootCall::Get`].
    Settings(#[serde(with = "crate::bounded_list")] Vec<BootSetting>),
    /// The answer to all other calls.
    Comparison(BootComparison),
}

/// The answer of such a function if it does not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OsAnswer {
    /// The answer to [`OsCall::Status`].
    Status(OsStatus),
    /// The answer to all other calls.
    Done,
}
