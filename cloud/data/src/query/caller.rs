//! Who makes a request.

use odata::Literal;
use resources::{Method, Resource, Role};

use super::fault::Fault;

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The cloud itself, which may do everything.
    Platform,
    /// Somebody with a credential, or without one.
    Holder {
        /// What the credential makes of its holder.
        role: Role,
        /// The actor that it stands for.
        actor: Option<i64>,
        /// The user, where the actor is one.
        user: Option<i64>,
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

    /// The roles whose rights it has together; none where it needs no rights.
    pub(super) fn roles(&self) -> Option<impl Iterator<Item = Role> + use<>> {
        match self {
            Caller::Platform => None,
            Caller::Holder { role, .. } => {
                let own = (*role != Role::Guest).then_some(*role);
                Some(std::iter::once(Role::Guest).chain(own))
            }
        }
    }

    /// The value of a parameter of a rule.
    pub(super) fn parameter(&self, name: &str) -> Result<Literal, Fault> {
        let number = match (self, name) {
            (Caller::Holder { actor, .. }, "actor") => *actor,
            (Caller::Holder { user, .. }, "user") => *user,
            (Caller::Platform, "actor" | "user") => None,
            _ => return Err(Fault::broken(format!("a rule has a parameter `@{name}`"))),
        };
        Ok(match number {
            Some(number) => Literal::Integer(number),
            // No row has this number, and null would be the same as null.
            None => Literal::Integer(-1),
        })
    }

    /// Whether any of its roles may do this with some rows of a resource.
    pub(super) fn has_any(&self, resource: &Resource, method: Method) -> bool {
        match self {
            Caller::Platform => true,
            Caller::Holder { role, .. } => resource.grants.iter().any(|grant| {
                (grant.role == Role::Guest || grant.role == *role) && grant.methods.has(method)
            }),
        }
    }
}
