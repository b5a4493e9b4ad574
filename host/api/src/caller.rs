//! The caller of a request: what it may see and change, and what plugins learn of it.

use model::{AppId, ServiceName};
use store::KeyOwner;

/// What a caller may see and change. Endpoints that name no app accept any caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyScope {
    All,
    App(AppId),
}

impl KeyScope {
    pub(crate) fn covers(self, app: AppId) -> bool {
        match self {
            KeyScope::All => true,
            KeyScope::App(own) => own == app,
        }
    }

    /// Returns whether this number from a request is covered; there may be no app with it.
    pub(crate) fn covers_number(self, number: i64) -> bool {
        match self {
            KeyScope::All => true,
            KeyScope::App(own) => u64::try_from(number) == Ok(own.0),
        }
    }
}

/// The caller of an admitted request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) scope: KeyScope,
    /// Absent if the request was admitted without a key.
    pub(crate) key: Option<KeyOwner>,
}

impl Caller {
    /// Returns the caller in the form for plugins. If the scope is everything without the device's key, no key was
    /// needed.
    pub(crate) fn requester(&self) -> Requester {
        match (self.scope, &self.key) {
            (KeyScope::All, Some(KeyOwner::Global)) => Requester::DeviceKey,
            (KeyScope::App(_), Some(KeyOwner::Service { app, service })) => Requester::Service {
                app: *app,
                service: service.clone(),
            },
            _ => Requester::LocalMode,
        }
    }
}

impl From<Requester> for Caller {
    fn from(requester: Requester) -> Self {
        match requester {
            Requester::DeviceKey => Caller {
                scope: KeyScope::All,
                key: Some(KeyOwner::Global),
            },
            Requester::LocalMode => Caller {
                scope: KeyScope::All,
                key: None,
            },
            Requester::Service { app, service } => Caller {
                scope: KeyScope::App(app),
                key: Some(KeyOwner::Service { app, service }),
            },
        }
    }
}

/// The maker of a request, as plugins see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requester {
    /// A client with the device's own key.
    DeviceKey,
    /// A client that needs no key, because the device is in local mode.
    LocalMode,
    /// A client with the key of this service.
    Service {
        /// The app that the key covers.
        app: AppId,
        /// The service's name.
        service: ServiceName,
    },
}
