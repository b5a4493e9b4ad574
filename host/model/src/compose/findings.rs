//! The findings of reading a whole target: warnings, and the remaining quotas.

/// The number of warnings that are kept; further ones are only counted.
const MAX_WARNINGS: usize = 200;
/// The limit for published ports of all services of one target together: ranges are written out, so
/// a small text can request very many.
const MAX_PORTS: usize = 131_072;
/// The limit for items of all lists and maps of one target together: each needs several times the
/// space of its text.
const MAX_ALL_ITEMS: usize = 131_072;

/// The findings of reading a whole target.
#[derive(Debug)]
pub(super) struct Findings {
    warnings: Vec<String>,
    unlisted: usize,
    ports_left: usize,
    items_left: usize,
}

impl Default for Findings {
    fn default() -> Self {
        Findings {
            warnings: Vec::new(),
            unlisted: 0,
            ports_left: MAX_PORTS,
            items_left: MAX_ALL_ITEMS,
        }
    }
}

impl Findings {
    pub(super) fn warn(&mut self, warning: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.unlisted += 1;
        }
    }

    /// Takes `count` from the remaining ports; `false` if there are too few.
    pub(super) fn take_ports(&mut self, count: usize) -> bool {
        take_from(&mut self.ports_left, count)
    }

    /// Takes `count` from the remaining items; `false` if there are too few.
    pub(super) fn take_items(&mut self, count: usize) -> bool {
        take_from(&mut self.items_left, count)
    }

    pub(super) fn into_warnings(mut self) -> Vec<String> {
        if self.unlisted > 0 {
            self.warnings.push(format!("and {} more", self.unlisted));
        }
        self.warnings
    }
}

fn take_from(left: &mut usize, count: usize) -> bool {
    let rest = left.checked_sub(count);
    *left = rest.unwrap_or(*left);
    rest.is_some()
}
