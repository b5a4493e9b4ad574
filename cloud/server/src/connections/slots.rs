//! The limits on the number of connections, for each address and in total.
//!
//! Proxies in front may have any number: they limit their own callers. Devices that have presented their key count
//! towards the total but not towards their address, since a site with hundreds of them may have a single address. If
//! all slots are in use, the group with the most of them loses its newest idle connection.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use cloud_core::limits::Network;
use ipnet::IpNet;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::activity::Activity;
use crate::bounds::Bounds;
use crate::forwarded::is_trusted;

/// The group that a connection counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Group {
    Proxies,
    Devices,
    Network(Network),
}

/// The open connections.
pub(super) struct Slots {
    bounds: Bounds,
    proxies: Vec<IpNet>,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    groups: HashMap<Group, BTreeMap<u64, SlotEntry>>,
    all: usize,
    next: u64,
}

#[derive(Clone)]
struct SlotEntry {
    activity: Arc<Activity>,
    end: CancellationToken,
}

/// The place of one connection; dropping it releases the place.
pub(super) struct Slot {
    number: u64,
    group: Mutex<Group>,
    entry: SlotEntry,
    table: Arc<Mutex<Table>>,
}

impl Slots {
    pub(super) fn new(bounds: Bounds, proxies: Vec<IpNet>) -> Self {
        Slots {
            bounds,
            proxies,
            table: Arc::default(),
        }
    }

    /// Takes a place for a connection from this address, if one is free or can be freed.
    pub(super) fn take(&self, from: IpAddr) -> Option<Slot> {
        let group = if is_trusted(&self.proxies, from) {
            Group::Proxies
        } else {
            Group::Network(Network::from_address(from))
        };
        let mut table = self.table.lock();
        let of_it = table.count(group);
        if group != Group::Proxies && of_it >= self.bounds.of_an_address {
            return None;
        }
        if table.all >= self.bounds.connections {
            table.make_room(of_it)?;
        }
        let number = table.next;
        table.next += 1;
        let entry = SlotEntry {
            activity: Arc::new(Activity::new(Instant::now())),
            end: CancellationToken::new(),
        };
        table.add(group, number, entry.clone());
        Some(Slot {
            number,
            group: Mutex::new(group),
            entry,
            table: self.table.clone(),
        })
    }
}

impl Table {
    fn count(&self, group: Group) -> usize {
        self.groups.get(&group).map_or(0, BTreeMap::len)
    }

    fn add(&mut self, group: Group, number: u64, entry: SlotEntry) {
        self.groups.entry(group).or_default().insert(number, entry);
        self.all += 1;
    }

    fn remove(&mut self, group: Group, number: u64) -> Option<SlotEntry> {
        let of_it = self.groups.get_mut(&group)?;
        let entry = of_it.remove(&number)?;
        if of_it.is_empty() {
            self.groups.remove(&group);
        }
        self.all -= 1;
        Some(entry)
    }

    /// Ends the newest idle connection of the group that has most, for a group that has `fewer`.
    fn make_room(&mut self, fewer: usize) -> Option<()> {
        let networks = self.groups.iter();
        let (group, entries) = networks
            .filter(|(group, entries)| {
                matches!(group, Group::Network(_)) && entries.len() > fewer.saturating_add(1)
            })
            .max_by_key(|(_, entries)| entries.len())?;
        let idle = entries.iter().rev().find(|(_, one)| one.activity.is_idle());
        let (group, number) = (*group, *idle?.0);
        self.remove(group, number)?.end.cancel();
        Some(())
    }
}

impl Slot {
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.entry.activity
    }

    /// Returns when another connection needs the place more.
    pub(super) async fn ended(&self) {
        self.entry.end.cancelled().await;
    }

    /// Counts the connection only towards the total from now on.
    pub(super) fn is_of_a_device(&self) {
        let mut group = self.group.lock();
        if matches!(*group, Group::Network(_)) {
            let mut table = self.table.lock();
            if let Some(entry) = table.remove(*group, self.number) {
                *group = Group::Devices;
                table.add(*group, self.number, entry);
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let group = *self.group.lock();
        self.table.lock().remove(group, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn slots(connections: usize, of_an_address: usize) -> Slots {
        let second = Duration::from_secs(1);
        let bounds = Bounds {
            connections,
            of_an_address,
            head: second,
            idle: second,
            body: second,
            unread: second,
        };
        Slots::new(bounds, vec!["10.0.0.0/8".parse().expect("a network")])
    }

    fn take(slots: &Slots, from: &str) -> Option<Slot> {
        slots.take(from.parse().expect("an address"))
    }

    #[test]
    fn an_address_has_its_share_and_a_network_of_ipv6_is_one() {
        let slots = slots(100, 2);
        let kept = [
            take(&slots, "192.0.2.1").expect("one"),
            take(&slots, "::ffff:192.0.2.1").expect("two"),
        ];
        assert!(take(&slots, "192.0.2.1").is_none());
        assert!(take(&slots, "192.0.2.2").is_some());
        let _ipv6 = [
            take(&slots, "2001:db8::1").expect("one"),
            take(&slots, "2001:db8::2").expect("two"),
        ];
        assert!(
            take(&slots, "2001:db8::ffff:0:0:3").is_none(),
            "the same /64"
        );
        assert!(take(&slots, "2001:db8:0:1::1").is_some(), "another");
        drop(kept);
        assert!(take(&slots, "192.0.2.1").is_some(), "once they are gone");
    }

    #[test]
    fn proxies_and_devices_are_not_counted_by_address() {
        let slots = slots(100, 1);
        let _proxies = [take(&slots, "10.0.0.1"), take(&slots, "10.0.0.1")]
            .map(|slot| slot.expect("a proxy's"));
        let device = take(&slots, "192.0.2.1").expect("a device");
        assert!(take(&slots, "192.0.2.1").is_none());
        device.is_of_a_device();
        device.is_of_a_device();
        let other = take(&slots, "192.0.2.1").expect("another device");
        drop((device, other));
        let table = slots.table.lock();
        assert_eq!((table.all, table.groups.len()), (2, 1));
    }

    #[tokio::test]
    async fn if_no_slot_is_free_the_largest_holder_loses_its_newest_idle_one() {
        let slots = slots(4, 100);
        let many: Vec<Slot> = (0..4)
            .map(|_| take(&slots, "192.0.2.1").expect("one"))
            .collect();
        let busy = many[3].activity().request();
        assert!(take(&slots, "192.0.2.1").is_none(), "the same again");
        let first = take(&slots, "192.0.2.2").expect("somebody else");
        many[2].ended().await;
        let _second = take(&slots, "192.0.2.3").expect("one more");
        many[1].ended().await;
        assert!(!many[0].entry.end.is_cancelled() && !many[3].entry.end.is_cancelled());
        drop((many, busy, first));
        assert_eq!(slots.table.lock().all, 1);
    }
}
