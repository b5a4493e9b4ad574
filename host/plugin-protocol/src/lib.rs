//! What plugins and their host say to each other, as plain data.
//!
//! A plugin's instance asks for what its capabilities reach with a [`CapabilityCall`]; the host looks up the
//! grant that the call takes ([`CapabilityCall::capability`]), does it, and answers with a
//! [`CapabilityAnswer`]. The host has what plugins provide done with an [`ActionCall`]. Nothing of either is a
//! pointer into the other: what an instance holds of the host is a [`Handle`], and streams are read piece by
//! piece. So none of it needs the two to be in one process.
//!
//! Nothing here does anything, and nothing is checked: the host does both.

#![warn(missing_docs)]

mod action_call;
mod caller;
mod capability;
mod capability_call;
mod errors;
mod values;

pub use action_call::{ActionAnswer, ActionCall, BootAnswer, BootCall, ProxyAnswer, ProxyCall};
pub use caller::{Caller, CallerScope};
pub use capability::Capability;
pub use capability_call::{
    Call, CapabilityAnswer, CapabilityCall, CloudQueue, CloudRecords, DeviceIdentity, DeviceState,
    HostNameGet, HostNameSet, Identify, IdentifyWindow, JournalOpen, JournalRead, LedNames,
    LedOpen, LedSet, LockAcquire, ProxyRequest, StoreDelete, StoreGet, StoreKeys, StoreSet,
    UnitQuery, UnitRestart,
};
pub use errors::{
    CloudRefusal, DataError, HostNameError, JournalError, LedError, LocksError, ProxyError,
    UnitError,
};
pub use values::{
    BootComparison, BootSetting, DnsRemote, Handle, Identity, JournalOptions, OpenLed, Piece,
    Proxy, ProxyKind, ProxyState, Redirection, UnitState,
};
