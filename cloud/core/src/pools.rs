//! Connections to the database, and how many of them one caller may use at a time.

use std::num::NonZeroU16;

use data::Options;
use resources::Role;
use serde::Deserialize;

/// The number of connections for each group of callers (`[pools]`), separately for each replica.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolSettings {
    /// For polls and reports of devices.
    devices: NonZeroU16,
    /// For the data API and the dashboard.
    people: NonZeroU16,
    /// For callers without a credential.
    guests: NonZeroU16,
    /// Prepared statements that each connection keeps. None behind a proxy that gives each transaction another server
    /// connection, such as PgBouncer.
    prepared_statements: u16,
}

impl Default for PoolSettings {
    fn default() -> Self {
        const EIGHT: NonZeroU16 = NonZeroU16::MIN.saturating_add(7);
        PoolSettings {
            devices: EIGHT,
            people: EIGHT,
            guests: NonZeroU16::MIN.saturating_add(1),
            prepared_statements: 400,
        }
    }
}

impl PoolSettings {
    /// Returns the options for opening the database.
    pub fn options(self) -> Options {
        let mut options = Options {
            prepared: self.prepared_statements.into(),
            ..Options::default()
        };
        options.devices.connections = self.devices.get().into();
        options.people.connections = self.people.get().into();
        options.guests.connections = self.guests.get().into();
        options
    }

    /// Simultaneous database requests of one caller; more of them wait. A person has half of the connections for
    /// people, over all sessions and keys; devices and fleets need less.
    pub fn share(self, role: Role) -> usize {
        match role {
            Role::Guest => part(self.guests, 2),
            Role::User | Role::UserKey => part(self.people, 2),
            Role::ProvisioningKey | Role::DeviceKey | Role::TunnelServer => part(self.people, 4),
        }
    }

    /// Answers too long for memory, which keep a database statement open: for one caller, and for all.
    pub fn streamed_answers(self) -> (usize, usize) {
        (part(self.people, 4), part(self.people, 2))
    }
}

fn part(connections: NonZeroU16, of: u16) -> usize {
    usize::from((connections.get() / of).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_never_has_all_connections_where_there_are_several() {
        let settings = PoolSettings::default();
        assert_eq!(settings.share(Role::Guest), 1);
        assert_eq!(settings.share(Role::User), 4);
        assert_eq!(settings.share(Role::DeviceKey), 2);
        assert_eq!(settings.streamed_answers(), (2, 4));
        let smallest: PoolSettings =
            toml::from_str("devices = 1\npeople = 1\nguests = 1").expect("settings");
        assert_eq!(smallest.share(Role::DeviceKey), 1);
        assert_eq!(smallest.streamed_answers(), (1, 1));
        assert_eq!(smallest.options().people.connections, 1);
    }
}
