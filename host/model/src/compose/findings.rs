//! What reading a whole target finds: warnings, and how much of its bounds is left.

/// Warnings that are kept; of the others only the count is.
const MAX_WARNINGS: usize = 200;
/// Published ports of all services of one target together: ranges are written out, so a small text can
/// ask for a great many.
const MAX_PORTS: usize = 131_072;
/// Items of all lists and maps of one target together: each becomes several times as large as its text.
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

    /// Takes `count` from what is left of the ports; `false` if there is too little.
    pub(super) fn take_ports(&mut self, count: usize) -> bool {
        take_from(&mut self.ports_left, count)
    }

    /// Takes `count` from what is left of the items; `false` if there is too little.
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
