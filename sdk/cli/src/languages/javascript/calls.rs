//! Calls in the functions of a source, as opposed to those that run while the build imports the plugin.

/// Returns the first line with a call in a function, counted from 1: within braces, or after the arrow of a function without
/// braces. `place_of_call` returns the position of the first call in a line.
pub(super) fn line_in_function(
    code: &str,
    place_of_call: impl Fn(&str) -> Option<usize>,
) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, line) in code.lines().enumerate() {
        let call = place_of_call(line).unwrap_or(line.len());
        let is_call = call < line.len();
        let (before, after) = line.split_at(call);
        depth = depth_after(before, depth);
        if is_call && (depth > 0 || before.contains("=>")) {
            return Some(index + 1);
        }
        depth = depth_after(after, depth);
    }
    None
}

/// Returns in how many braces the end of a code is whose beginning is in so many.
fn depth_after(code: &str, depth: usize) -> usize {
    code.chars().fold(depth, |depth, char| match char {
        '{' => depth + 1,
        '}' => depth.saturating_sub(1),
        _ => depth,
    })
}
