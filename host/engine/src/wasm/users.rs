//! Users of the host for services: one for each, and a group for each app.
//!
//! A service keeps its user over updates, so that it owns the files in its volumes; a new container has the same user
//! as the container that it replaces. Numbers are recorded with the container, and none is assigned twice.

use std::collections::BTreeSet;

use model::ContainerId;
use sha2::{Digest as _, Sha256};
use wasm_service::record::ServiceUser;

use super::WasmState;
use super::record::ContainerRecord;
use crate::EngineError;

/// A range of user and group numbers that nothing else on this machine uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRange {
    /// The first number.
    pub first: u32,
    /// The size of the range.
    pub count: u32,
}

impl Default for UserRange {
    /// Above the numbers that distributions, service managers and container engines assign by themselves (systemd's
    /// "Users, Groups, UIDs and GIDs": from 1,879,048,192 to 2,147,352,575 nothing is assigned).
    fn default() -> Self {
        UserRange {
            first: 1_900_000_000,
            count: 1 << 16,
        }
    }
}

impl UserRange {
    /// Returns the first and the last number.
    #[must_use]
    pub fn ends(&self) -> (u32, u32) {
        (
            self.first,
            self.first.saturating_add(self.count.saturating_sub(1)),
        )
    }

    /// Checks that processes of this one can become these users.
    pub(super) fn check(&self) -> Result<(), String> {
        confinement::can_become(self.first, self.count)
    }

    fn contains(&self, number: u32) -> bool {
        number
            .checked_sub(self.first)
            .is_some_and(|index| index < self.count)
    }

    /// Returns a number that is not among `in_use`: the same for the same name, as long as it is free. `None` if all
    /// are in use.
    fn allocate(&self, name: &str, in_use: &BTreeSet<u32>) -> Option<u32> {
        let digest = Sha256::digest(name);
        let start = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        let number = |attempt: u32| {
            let index = (u64::from(start) + u64::from(attempt)) % u64::from(self.count.max(1));
            let index = u32::try_from(index).ok()?;
            self.first.checked_add(index)
        };
        (0..self.count)
            .filter_map(number)
            .find(|number| !in_use.contains(number))
    }

    /// Returns the user for a service that has none yet.
    fn assign(
        &self,
        device: &str,
        own: &NameInApp,
        others: &[(NameInApp, ServiceUser)],
    ) -> Option<ServiceUser> {
        let NameInApp { app, service } = own;
        let mut in_use: BTreeSet<u32> = others
            .iter()
            .flat_map(|(_, user)| [user.uid, user.app_gid])
            .collect();
        let of_app = others.iter().find(|(other, _)| other.app == *app);
        let app_gid = match of_app {
            Some((_, user)) => user.app_gid,
            None => self.allocate(&format!("{device} {app}"), &in_use)?,
        };
        in_use.insert(app_gid);
        let before = others.iter().find(|(other, _)| other == own);
        let uid = match before {
            Some((_, user)) => user.uid,
            None => self.allocate(&format!("{device} {app} {service}"), &in_use)?,
        };
        Some(ServiceUser { uid, app_gid })
    }
}

/// The service that a container belongs to.
#[derive(Debug, PartialEq, Eq)]
struct NameInApp {
    app: String,
    service: String,
}

impl WasmState {
    /// Returns the record of a container that is about to be started, with its own user if that is possible.
    pub(super) fn record_with_user(
        &self,
        id: &ContainerId,
    ) -> Result<ContainerRecord, EngineError> {
        let mut record = self.our_container(id)?;
        let range = &self.config.users;
        let keeps = |user: &ServiceUser| range.contains(user.uid) && range.contains(user.app_gid);
        let user = match (&self.users, record.user.filter(keeps)) {
            (Err(_), _) => None,
            (Ok(()), Some(user)) => Some(user),
            (Ok(()), None) => Some(self.new_user(&record)?),
        };
        if record.user != user {
            record.user = user;
            self.write_container(&record)?;
        }
        Ok(record)
    }

    fn new_user(&self, record: &ContainerRecord) -> Result<ServiceUser, EngineError> {
        let range = &self.config.users;
        let others: Vec<_> = self
            .containers
            .records()
            .iter()
            .filter(|other| other.id != record.id)
            .filter_map(|other| Some((self.name_in_app(other), other.user?)))
            .filter(|(_, user)| range.contains(user.uid) && range.contains(user.app_gid))
            .collect();
        let device = self.ownership.device.to_string();
        range
            .assign(&device, &self.name_in_app(record), &others)
            .ok_or_else(|| {
                EngineError::Invalid(format!(
                    "the container `{}` gets no user of its own: all {} in the range are in use",
                    record.name, range.count
                ))
            })
    }

    /// Determines the service by the labels; a container without them is its own service.
    fn name_in_app(&self, record: &ContainerRecord) -> NameInApp {
        let label = |name: &str| {
            let labels = &record.config.labels;
            labels.get(&self.ownership.branding.label(name)).cloned()
        };
        NameInApp {
            app: label("app-uuid").unwrap_or_default(),
            service: label("service-name").unwrap_or_else(|| record.name.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(app: &str, service: &str) -> NameInApp {
        NameInApp {
            app: app.into(),
            service: service.into(),
        }
    }

    #[test]
    fn each_service_has_a_user_of_its_own_and_each_app_a_group() {
        let range = UserRange::default();
        let mut assigned: Vec<(NameInApp, ServiceUser)> = Vec::new();
        for app in 0..20 {
            for service in 0..20 {
                let own = name(&format!("app{app}"), &format!("service{service}"));
                let user = range.assign("device", &own, &assigned).unwrap();
                assert!(range.contains(user.uid) && range.contains(user.app_gid));
                for (other, theirs) in &assigned {
                    assert_ne!(user.uid, theirs.uid);
                    assert_ne!(user.uid, theirs.app_gid);
                    assert_eq!(user.app_gid == theirs.app_gid, own.app == other.app);
                }
                assigned.push((own, user));
            }
        }
    }

    #[test]
    fn a_service_keeps_its_user_over_updates() {
        let range = UserRange::default();
        let own = name("app", "web");
        let first = range.assign("device", &own, &[]).unwrap();
        // Both while the previous container exists, and when nothing is left of it.
        let before = [(name("app", "web"), first)];
        assert_eq!(range.assign("device", &own, &before), Some(first));
        assert_eq!(range.assign("device", &own, &[]), Some(first));
    }

    #[test]
    fn a_range_that_is_used_up_gives_nobody_a_second_time() {
        let range = UserRange {
            first: 5000,
            count: 3,
        };
        let first = range.assign("device", &name("a", "web"), &[]).unwrap();
        let assigned = vec![(name("a", "web"), first)];
        let second = range.assign("device", &name("a", "db"), &assigned).unwrap();
        assert_ne!(first.uid, second.uid);
        let assigned = vec![(name("a", "web"), first), (name("a", "db"), second)];
        assert_eq!(range.assign("device", &name("a", "cache"), &assigned), None);
    }
}
