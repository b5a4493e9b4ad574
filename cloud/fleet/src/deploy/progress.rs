//! The progress of copies: bars at a terminal, nothing elsewhere.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{Output, note_line, printable};

/// All copies of a deployment.
pub(super) struct Progress {
    bars: MultiProgress,
    /// A line is printed for each completed copy, because there are no bars.
    prints: bool,
}

/// The bar of one copy.
pub(super) struct Bar {
    bar: ProgressBar,
    name: String,
    prints: bool,
}

impl Progress {
    pub(super) fn new(output: &Output) -> Self {
        let bars = MultiProgress::new();
        let has_bars = !output.json && std::io::stderr().is_terminal();
        if !has_bars {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        Progress {
            bars,
            prints: !output.json && !has_bars,
        }
    }

    pub(super) fn bar(&self, name: &str, bytes: u64) -> Bar {
        let bar = self.bars.add(ProgressBar::new(bytes));
        let shape = "{prefix} {wide_bar} {bytes} of {total_bytes}";
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar {
            bar,
            name: name.to_owned(),
            prints: self.prints,
        }
    }

    /// Removes the bars.
    pub(super) fn end(&self) {
        let _ = self.bars.clear();
    }
}

impl Bar {
    /// Adds to the number of bytes that are done.
    pub(super) fn more(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    pub(super) fn finish(&self, image: &str) {
        self.bar.finish();
        if self.prints {
            note_line(&format!("{}: copied {}", self.name, printable(image)));
        }
    }
}
