//! Capabilities in the languages that have their own modules for them, called from plugins in the device's runtime.
//!
//! One plugin per language calls all of them, because compiling a runtime such as Python's takes most of the time.

mod lines_and_chips;
mod report_fields;
mod store_in_c;
mod whole_answers;
mod whole_numbers;

use crate::author::Author;
use crate::languages::can_build;

/// A capability, or several that belong together.
struct Capability {
    /// Part of the plugin's source, with one handler.
    javascript: &'static str,
    python: &'static str,
    /// Lines of `[capabilities]`.
    reasons: &'static str,
    /// The route of the handler: the method and the path, and the handler's name.
    route: (&'static str, &'static str),
    /// Part of the device's file.
    device: &'static str,
    /// Part of the test.
    steps: &'static str,
}

const ALL: [Capability; 4] = [
    whole_numbers::CAPABILITY,
    report_fields::CAPABILITY,
    whole_answers::CAPABILITY,
    lines_and_chips::CAPABILITY,
];
/// The number of steps of all of them.
const STEPS: usize = 10;

fn check(language: &str, source: &str, more: fn(&Capability) -> &'static str, refused: &str) {
    if !can_build(language) {
        return;
    }
    let author = Author::with_project(language);
    let of_all = |part: fn(&Capability) -> &'static str| ALL.iter().map(part).collect::<String>();
    author.append(&format!("rails/{source}"), &of_all(more));
    let reasons = of_all(|capability| capability.reasons);
    author.edit(
        "rails/plugin.toml",
        "[capabilities]\n",
        &format!("[capabilities]\n{reasons}"),
    );
    let routes = ALL.iter().map(|Capability { route, .. }| {
        let (route, handler) = route;
        format!("\"{route}\" = \"{handler}\"\n")
    });
    let routes: String = routes.collect();
    author.edit(
        "rails/plugin.toml",
        "[routes]\n",
        &format!("[routes]\n{routes}"),
    );
    author.write("rails/device.toml", &of_all(|capability| capability.device));
    let steps = of_all(|capability| capability.steps);
    author.write(
        "rails/test/hello.toml",
        &steps.replace("REFUSED_NUMBERS", refused),
    );
    let passed = author.run_in("rails", "test").succeeds();
    let expected = format!("{STEPS} passed, 0 failed");
    assert!(passed.out.contains(&expected), "{}", passed.out);
}

#[test]
fn a_plugin_in_javascript_uses_the_device() {
    let refused = "RangeError RangeError RangeError RangeError";
    check(
        "javascript",
        "src/plugin.js",
        |capability| capability.javascript,
        refused,
    );
}

#[test]
fn a_plugin_in_python_uses_the_device() {
    check(
        "python",
        "src/plugin.py",
        |capability| capability.python,
        "ValueError ValueError",
    );
}
