//! The slots of a system with two bootable slots.

/// The status of a slot, according to RAUC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotStatus {
    pub(crate) name: String,
    class: String,
    state: String,
    is_bootable: bool,
    /// The slot that it belongs to.
    parent: Option<String>,
    /// `ok`, or how far its installation got.
    status: Option<String>,
    /// The version of the bundle that was installed.
    pub(crate) version: Option<String>,
}

/// The running slot, and the one for updates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) booted: SlotStatus,
    pub(crate) other: SlotStatus,
    /// The slots that belong to the other slot, and are booted with it.
    children: Vec<SlotStatus>,
}

impl SlotStatus {
    /// Creates the status of the slot with this name; `text` returns RAUC's fields for it.
    pub(crate) fn new(name: String, text: impl Fn(&str) -> Option<String>) -> SlotStatus {
        SlotStatus {
            name,
            class: text("class").unwrap_or_default(),
            state: text("state").unwrap_or_default(),
            is_bootable: text("bootname").is_some(),
            parent: text("parent"),
            status: text("status"),
            version: text("bundle.version"),
        }
    }

    fn is_whole(&self) -> bool {
        self.status.as_deref() == Some("ok")
    }
}

impl Slots {
    /// Finds the two bootable slots among all slots.
    ///
    /// # Errors
    /// If there are not exactly two, one of which is running.
    pub(crate) fn from_statuses(slots: Vec<SlotStatus>) -> Result<Slots, String> {
        let booted = slots
            .iter()
            .find(|slot| slot.state == "booted" && slot.parent.is_none())
            .cloned()
            .ok_or("RAUC does not say which slot runs")?;
        let mut others = slots.iter().filter(|slot| {
            let is_alike = slot.class == booted.class && slot.parent.is_none();
            is_alike && slot.is_bootable && slot.name != booted.name
        });
        let (Some(other), None) = (others.next().cloned(), others.next()) else {
            return Err(format!(
                "RAUC does not have exactly one other slot of the class `{}` with a `bootname`",
                booted.class
            ));
        };
        let children = slots
            .iter()
            .filter(|slot| slot.parent.as_ref() == Some(&other.name));
        Ok(Slots {
            children: children.cloned().collect(),
            booted,
            other,
        })
    }

    /// Returns the version that is completely installed in the other slot and in all that belong to it: after a
    /// power cut during an installation, some of them have another version.
    pub(crate) fn staged_version(&self) -> Option<&str> {
        let version = self.other.version.as_deref()?;
        let mut group = self.children.iter().chain([&self.other]);
        let is_whole =
            group.all(|slot| slot.is_whole() && slot.version.as_deref() == Some(version));
        is_whole.then_some(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(name: &str, fields: &[(&str, &str)]) -> SlotStatus {
        SlotStatus::new(name.to_owned(), |field| {
            let mut fields = fields.iter();
            let found = fields.find(|(name, _)| *name == field);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn root(name: &str, state: &str, version: &str, status: &str) -> SlotStatus {
        slot(
            name,
            &[
                ("class", "rootfs"),
                ("state", state),
                ("bootname", name),
                ("bundle.version", version),
                ("status", status),
            ],
        )
    }

    fn app(name: &str, parent: &str, version: &str) -> SlotStatus {
        slot(
            name,
            &[
                ("class", "appfs"),
                ("state", "inactive"),
                ("parent", parent),
                ("bundle.version", version),
                ("status", "ok"),
            ],
        )
    }

    #[test]
    fn only_a_completely_installed_version_counts_as_staged() {
        let a = || root("rootfs.0", "booted", "1", "ok");
        for (other, staged) in [
            (root("rootfs.1", "inactive", "2", "ok"), Some("2")),
            (root("rootfs.1", "inactive", "2", "failed"), None),
            (root("rootfs.1", "inactive", "2", "pending"), None),
            (
                slot("rootfs.1", &[("class", "rootfs"), ("bootname", "B")]),
                None,
            ),
        ] {
            let slots = Slots::from_statuses(vec![a(), other]).unwrap();
            assert_eq!(slots.booted.version.as_deref(), Some("1"));
            assert_eq!(slots.staged_version(), staged, "{slots:?}");
        }
        let with = |children: [SlotStatus; 2]| {
            let [own, others] = children;
            let b = root("rootfs.1", "inactive", "2", "ok");
            Slots::from_statuses(vec![own, others, a(), b]).unwrap()
        };
        let whole = with([
            app("appfs.0", "rootfs.0", "1"),
            app("appfs.1", "rootfs.1", "2"),
        ]);
        assert_eq!(whole.staged_version(), Some("2"));
        let cut_off = with([
            app("appfs.0", "rootfs.0", "1"),
            app("appfs.1", "rootfs.1", "1"),
        ]);
        assert_eq!(cut_off.staged_version(), None);
    }

    #[test]
    fn a_system_without_two_slots_is_refused() {
        let a = || root("rootfs.0", "booted", "1", "ok");
        let b = || root("rootfs.1", "inactive", "1", "ok");
        for slots in [
            vec![],
            vec![a()],
            vec![b()],
            vec![a(), b(), root("rootfs.2", "inactive", "1", "ok")],
            vec![a(), slot("rootfs.1", &[("class", "rootfs")])],
            vec![
                a(),
                slot("rescue.0", &[("class", "rescue"), ("bootname", "R")]),
            ],
        ] {
            assert!(Slots::from_statuses(slots).is_err());
        }
    }
}
