//! Who makes a request.

use odata::Literal;
use resources::{KeyLimits, Method, Resource, Role};

use super::compile_error::CompileError;
use crate::purpose::SystemPurpose;

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The cloud itself, which may do everything, and does it for a purpose.
    Platform(SystemPurpose),
    /// Somebody with a credential, or without one.
    Holder {
        /// What the credential makes of its holder.
        role: Role,
        /// The actor that it stands for.
        actor: Option<i64>,
        /// The user, where the actor is one.
        user: Option<i64>,
    },
    /// Somebody with a named key that is limited.
    LimitedKey {
        /// The actor of the user.
        actor: Option<i64>,
        /// The user.
        user: Option<i64>,
        /// To what.
        limits: KeyLimits,
    },
}

impl Caller {
    /// Anybody, without a credential.
    #[must_use]
    pub fn guest() -> Self {
        Caller::Holder {
            role: Role::Guest,
            actor: None,
            user: None,
        }
    }

    /// Whether it has no credential.
    #[must_use]
    pub fn is_guest(&self) -> bool {
        matches!(
            self,
            Caller::Holder {
                role: Role::Guest,
                ..
            }
        )
    }

    /// What its credential makes of it; none of the cloud itself.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Caller::Platform(_) => None,
            Caller::Holder { role, .. } => Some(*role),
            Caller::LimitedKey { .. } => Some(Role::UserKey),
        }
    }

    /// The actor that its credential stands for.
    #[must_use]
    pub fn actor(&self) -> Option<i64> {
        match self {
            Caller::Platform(_) => None,
            Caller::Holder { actor, .. } | Caller::LimitedKey { actor, .. } => *actor,
        }
    }

    /// The user, where the actor is one.
    #[must_use]
    pub fn user(&self) -> Option<i64> {
        match self {
            Caller::Platform(_) => None,
            Caller::Holder { user, .. } | Caller::LimitedKey { user, .. } => *user,
        }
    }

    /// What the rights of its own role are limited to, where it is a named key.
    pub(super) fn limits(&self) -> Option<KeyLimits> {
        match self {
            Caller::LimitedKey { limits, .. } => Some(*limits),
            Caller::Holder {
                role: Role::UserKey,
                ..
            } => Some(KeyLimits::default()),
            Caller::Platform(_) | Caller::Holder { .. } => None,
        }
    }

    /// The roles whose rights it has together; none where it needs no rights.
    pub(super) fn roles(&self) -> Option<impl Iterator<Item = Role> + use<>> {
        let role = self.role()?;
        let own = (role != Role::Guest).then_some(role);
        Some(std::iter::once(Role::Guest).chain(own))
    }

    /// The value of a parameter of a rule.
    pub(super) fn parameter(&self, name: &str) -> Result<Literal, CompileError> {
        let number = match name {
            "actor" => self.actor(),
            "user" => self.user(),
            "fleet" => self.limits().and_then(|limits| limits.fleet),
            _ => {
                return Err(CompileError::broken(format!(
                    "a rule has a parameter `@{name}`"
                )));
            }
        };
        Ok(match number {
            Some(number) => Literal::Integer(number),
            // No row has this number, and null would be the same as null.
            None => Literal::Integer(-1),
        })
    }

    /// Whether any of its roles may do this with some rows of a resource.
    pub(super) fn has_any(&self, resource: &Resource, method: Method) -> bool {
        let Some(own) = self.role() else {
            return true;
        };
        let limited = self
            .limits()
            .is_some_and(|limits| !limits.permit(resource.table, method));
        resource.grants.iter().any(|grant| {
            let is_own = grant.role == own && !limited;
            (grant.role == Role::Guest || is_own) && grant.methods.has(method)
        })
    }
}
