//! What the author can write into the device file, as the calls of a plugin show: in the terminal, because plugins hide
//! the text of an error from their callers, and in the failure of a test's step.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::output::note_line;

/// The most hints that the terminal shows.
const SHOWN: usize = 64;
/// The most hints in the failure of one step.
const LATEST: usize = 10;

/// The hints of one device.
#[derive(Default)]
pub(crate) struct Hints(Mutex<HintLists>);

#[derive(Default)]
struct HintLists {
    /// Those that the terminal has shown.
    shown: BTreeSet<String>,
    /// Those since the last time they were read, oldest first.
    latest: Vec<String>,
}

impl Hints {
    /// Shows a hint in the terminal, unless it was shown before, and keeps it for [`Self::take`].
    pub(crate) fn show(&self, hint: &str) {
        let mut lists = self.0.lock();
        let is_new = !lists.latest.iter().any(|latest| latest == hint);
        if is_new && lists.latest.len() < LATEST {
            lists.latest.push(hint.to_owned());
        }
        if lists.shown.len() < SHOWN && !lists.shown.contains(hint) {
            note_line(hint);
            lists.shown.insert(hint.to_owned());
        }
    }

    /// Returns the hints since the last time, oldest first, each once.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_its_hints_and_the_terminal_each_of_them_once() {
        let hints = Hints::default();
        for hint in ["a", "b", "a"] {
            hints.show(hint);
        }
        assert_eq!(hints.take(), ["a", "b"]);
        assert_eq!(hints.take(), [""; 0]);
        hints.show("a");
        assert_eq!(hints.take(), ["a"], "the later step has the same cause");
        assert_eq!(hints.0.lock().shown.len(), 2);
    }

    #[test]
    fn a_plugin_that_makes_up_names_fills_neither_the_memory_nor_the_terminal() {
        let hints = Hints::default();
        for number in 0..1000 {
            hints.show(&number.to_string());
        }
        assert_eq!(hints.0.lock().shown.len(), SHOWN);
        assert_eq!(hints.take().len(), LATEST);
    }
}
