//! The clocks of JavaScript, which belong to the language and not to a module of the SDK. Without the capability `clock` they
//! work only while the plugin is imported; the SDK's errors in calls say so, and the build says it earlier.

use super::globals::{first_in_function, members};
use crate::languages::syntax_tree::{Capture, SyntaxTree};
use crate::project::ProjectFolder;

/// Calls of `Date` as a constructor, whose arguments may be missing, and as a function.
const DATES: &str = r#"
    (new_expression
        constructor: (identifier) @name
        arguments: (arguments)? @arguments
        (#eq? @name "Date")) @constructed
    (call_expression function: (identifier) @name (#eq? @name "Date")) @called"#;

/// Returns a warning for each source of a plugin without a clock that reads one in a function. It is not an error: the
/// function may be one that runs only while the plugin is imported.
pub(super) fn warnings(project: &ProjectFolder, sources: &[SyntaxTree]) -> Vec<String> {
    let found = sources.iter().filter_map(|source| {
        let (clock, line) = clock_and_line(source)?;
        let file = source.file.strip_prefix(&project.path);
        Some(format!(
            "{clock} is used in {}:{line}, but [capabilities] in plugin.toml does not ask for `clock`, without which it is an \
             error in a call: add `clock = \"why\"`",
            file.unwrap_or(&source.file).display()
        ))
    });
    found.collect()
}

/// Returns the first clock that a function reads, as a warning names it, and its line.
fn clock_and_line(source: &SyntaxTree) -> Option<(&'static str, usize)> {
    let uses = [
        ("`Date.now`", readings(source, "Date")),
        ("`performance.now`", readings(source, "performance")),
        ("`new Date()`", current_dates(source)),
    ];
    let found = uses.into_iter().filter_map(|(clock, places)| {
        let place = first_in_function(source, places)?;
        Some((clock, place))
    });
    let (clock, place) = found.min_by_key(|(_, place)| place.node.start_byte())?;
    Some((clock, place.line))
}

/// Returns where a source uses the function `now` of an object.
fn readings<'tree>(source: &'tree SyntaxTree, object: &str) -> Vec<Capture<'tree>> {
    let readings =
        members(source).filter(|member| member.object == object && member.property == "now");
    readings.map(|member| member.place).collect()
}

/// Returns where a source asks for the date of the current time. With an argument, it is a time of the plugin's own.
fn current_dates(source: &SyntaxTree) -> Vec<Capture<'_>> {
    let dates = source.matches(DATES, ["arguments", "constructed", "called"]);
    let dates = dates
        .into_iter()
        .filter_map(|[arguments, constructed, called]| {
            let has_arguments = arguments.is_some_and(|arguments| {
                let mut cursor = arguments.node.walk();
                let mut values = arguments.node.named_children(&mut cursor);
                values.any(|value| value.kind() != "comment")
            });
            called.or(constructed.filter(|_| !has_arguments))
        });
    dates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::javascript::globals::parsed;

    #[test]
    fn only_clocks_that_a_function_reads_are_found() {
        let (date, new, performance) = ("`Date.now`", "`new Date()`", "`performance.now`");
        for (code, expected) in [
            ("const a = Date.now();", None),
            ("const a = new Date();", None),
            ("function f() {\n  return Date.now();\n}", Some((date, 2))),
            ("const f = () => new Date();", Some((new, 1))),
            ("const f = () => new Date( );", Some((new, 1))),
            ("const f = () => new Date(/* now */);", Some((new, 1))),
            ("const f = () => +new Date;", Some((new, 1))),
            ("const f = () => (new Date).getTime();", Some((new, 1))),
            ("const f = () => Date();", Some((new, 1))),
            ("class A { t = Date.now(); }", Some((date, 1))),
            (
                "const f = () => performance.now() - a;",
                Some((performance, 1)),
            ),
            ("const f = () => globalThis.Date.now();", Some((date, 1))),
            ("const f = () => clock.map(Date.now);", Some((date, 1))),
            (
                "const a = Date.now();\nfunction f() {\n  performance.now();\n  Date.now();\n}",
                Some((performance, 3)),
            ),
            ("const f = () => new Date(0);", None),
            ("const f = (a) => new Date(a);", None),
            ("const f = () => new MyDate();", None),
            ("const f = () => new Dates();", None),
            ("const f = () => own.Date.now();", None),
            ("const f = () => Date.nowhere();", None),
            ("const f = () => Date.parse(a);", None),
            ("const f = () => MyDate.now();", None),
            ("function f() {}\nconst a = new Date();", None),
            ("new Date", None),
            ("Date()", None),
            ("", None),
        ] {
            assert_eq!(clock_and_line(&parsed(code)), expected, "{code}");
        }
    }

    /// Attack: a source that takes time out of proportion to its length.
    #[test]
    fn a_long_source_takes_time_in_proportion_to_its_length() {
        let code = "() => new Date(".repeat(1 << 17);
        assert_eq!(clock_and_line(&parsed(&code)), None);
    }
}
