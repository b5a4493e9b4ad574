//! The reason why componentize-py has failed, as an author needs it: the exception that the import of the plugin has raised,
//! and its place in the author's own sources.

use std::path::Path;

/// The first line of a traceback.
const TRACEBACK: &str = "Traceback (most recent call last):";
/// The most lines of an exception that are shown.
const LINES: usize = 20;

/// A place in a traceback.
struct Frame {
    path: String,
    line: String,
    /// The source at that place, and marks below it.
    source: Vec<String>,
}

/// Returns the exception in the output of componentize-py, with its place if a file of the author's raised it or called
/// what did; `folder` is the name of the author's sources in the output, and `shown` is their path for the author.
pub(super) fn exception(output: &str, folder: &str, shown: &str) -> Option<String> {
    // The last one is what the import has raised; those before it are its causes.
    let (_, traceback) = output.rsplit_once(TRACEBACK)?;
    let mut frames: Vec<Frame> = Vec::new();
    let mut message = Vec::new();
    for line in traceback.lines().skip(1) {
        if !message.is_empty() {
            // componentize-py adds its own account after an empty line.
            if line.is_empty() || message.len() == LINES {
                break;
            }
            message.push(line);
        } else if let Some(frame) = frame(line) {
            frames.push(frame);
        } else if line.starts_with(' ') {
            if let Some(frame) = frames.last_mut() {
                frame.source.push(line.to_owned());
            }
        } else {
            message.push(line);
        }
    }
    let exception = message.join("\n");
    if exception.trim().is_empty() {
        return None;
    }
    let mut own = frames.into_iter().rev();
    let own = own.find_map(|frame| {
        let file = frame.path.strip_prefix(folder)?.strip_prefix('/')?;
        let file = Path::new(shown).join(file);
        Some((file.display().to_string(), frame.line, frame.source))
    });
    let Some((file, line, source)) = own else {
        return Some(exception);
    };
    let mut text = format!("{file}:{line}: {exception}");
    for line in source.iter().take(LINES) {
        text.push('\n');
        text.push_str(line);
    }
    Some(text)
}

/// Reads `  File "/1/plugin.py", line 3, in <module>`.
fn frame(line: &str) -> Option<Frame> {
    let (path, rest) = line.strip_prefix("  File \"")?.split_once("\", line ")?;
    Some(Frame {
        path: path.to_owned(),
        line: rest.split(',').next().unwrap_or_default().to_owned(),
        source: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What componentize-py prints around a traceback.
    fn output(traceback: &str) -> String {
        format!(
            "Traceback (most recent call last):\n  File \"/bin/componentize-py\", line 8, in <module>\n    sys.exit(script())\n\
             AssertionError: {traceback}\n\nCaused by:\n    something\n\nStack backtrace:\n   0: <anyhow::Error>::msg\n"
        )
    }

    #[test]
    fn an_exception_has_its_place_in_the_authors_sources() {
        for (traceback, expected) in [
            (
                "Traceback (most recent call last):\n  File \"/0/routes.py\", line 4, in <module>\n    import plugin\n  \
                 File \"/1/plugin.py\", line 5\n    return f\"x\" +\n                 ^\nSyntaxError: invalid syntax\n",
                "src/plugin.py:5: SyntaxError: invalid syntax\n    return f\"x\" +\n                 ^",
            ),
            // What the SDK raises is shown where the plugin calls it, and the cause is not.
            (
                "Traceback (most recent call last):\n  File \"/2/supervisor_sdk/store.py\", line 11, in <module>\nImportError: \
                 a\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call \
                 last):\n  File \"/0/routes.py\", line 4, in <module>\n    import plugin\n  File \"/1/own/rails.py\", line 3, in \
                 <module>\n    from supervisor_sdk import store\n  File \"/2/supervisor_sdk/__init__.py\", line 83, in \
                 __getattr__\n    raise ImportError(\nImportError: the plugin\nuses it\n",
                "src/own/rails.py:3: ImportError: the plugin\nuses it\n    from supervisor_sdk import store",
            ),
            // Two parameters of a function receive the body.
            (
                "Traceback (most recent call last):\n  File \"/0/routes.py\", line 6, in <module>\n    Handler = handler({\n  \
                 File \"/2/supervisor_sdk/handler.py\", line 29, in handler\nTypeError: both take the body\n",
                "TypeError: both take the body",
            ),
        ] {
            let found = exception(&output(traceback), "/1", "src");
            assert_eq!(found.as_deref(), Some(expected), "{traceback}");
        }
    }

    #[test]
    fn an_output_without_an_exception_has_none_and_a_long_one_is_cut() {
        for text in [
            "",
            "error: failed",
            TRACEBACK,
            "Traceback (most recent call last):\n\n",
        ] {
            assert_eq!(exception(text, "/1", "src"), None, "{text}");
        }
        let long = format!("{TRACEBACK}\nValueError: a\n{}", "b\n".repeat(10_000));
        let found = exception(&long, "/1", "src").unwrap();
        assert_eq!(found.lines().count(), LINES);
    }
}
