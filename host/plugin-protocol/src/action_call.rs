//! What the host has plugins do that provide an action.

use serde::{Deserialize, Serialize};

use crate::{
    Action, BootComparison, BootSetting, EventAnswer, OsStatus, PluginEvent, ProxyError,
    ProxyState, Redirection,
};

/// A call of the function of an action that a plugin exports.
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
    Event(PluginEvent),
    /// `wit/action-provider.wit`
    Own(OwnCall),
}

impl ActionCall {
    /// The action whose function it calls.
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

/// What the provider answered: of the same kind as the call, where it keeps to the rules.
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

/// A call of an action of a plugin's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCall {
    /// One of the manifest's.
    pub name: String,
    /// What it is done with.
    pub input: Vec<u8>,
}

/// A function of `wit/proxy-redirector.wit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the functions of `wit/proxy-redirector.wit`, by their names"
)]
pub enum ProxyCall {
    Get,
    Set(Option<Redirection>),
    NoProxy,
    SetNoProxy(Vec<String>),
    Apply,
}

/// What such a function answers where it does not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProxyAnswer {
    /// Of [`ProxyCall::Get`].
    State(ProxyState),
    /// Of [`ProxyCall::NoProxy`].
    Addresses(Vec<String>),
    /// Of the others.
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

/// What such a function answers where it does not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BootAnswer {
    /// Of [`BootCall::Get`].
    Settings(Vec<BootSetting>),
    /// Of the others.
    Comparison(BootComparison),
}

/// A function of `wit/os-update.wit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the functions of `wit/os-update.wit`, by their names"
)]
pub enum OsCall {
    Status,
    Stage { source: String, version: String },
    Activate,
    Commit,
    RollBack,
}

/// What such a function answers where it does not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OsAnswer {
    /// Of [`OsCall::Status`].
    Status(OsStatus),
    /// Of the others.
    Done,
}
