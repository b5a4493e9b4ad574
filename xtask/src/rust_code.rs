//! The code of Rust files, for checks that read identifiers.

/// Returns the text of a Rust file without its comments, strings and characters, with the same number of lines.
pub(crate) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let omitted = length_to_omit(rest);
        let (piece, after) = rest.split_at(omitted.unwrap_or(first.len_utf8()));
        if omitted.is_some() {
            code.push(' ');
            code.extend(piece.chars().filter(|c| *c == '\n'));
        } else {
            code.push(first);
        }
        rest = after;
    }
    code
}

/// Returns the length of the comment, string or character with which `rest` begins; `None` if it begins with code.
fn length_to_omit(rest: &str) -> Option<usize> {
    let until = |from: usize, end: &str| {
        let at = rest.get(from..).and_then(|inside| inside.find(end));
        at.map_or(rest.len(), |at| from + at + end.len())
    };
    if rest.starts_with("//") {
        return Some(until(2, "\n"));
    }
    if rest.starts_with("/*") {
        return Some(until(2, "*/"));
    }
    if let Some(raw) = rest.strip_prefix('r') {
        let quoted = raw.trim_start_matches('#');
        if !quoted.starts_with('"') {
            return None;
        }
        let hashes = raw.len() - quoted.len();
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(until(1 + hashes + 1, &end));
    }
    if rest.starts_with('"') {
        let mut characters = rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => return Some(at + 1),
                '\\' => {
                    characters.next();
                }
                _ => {}
            }
        }
        return Some(rest.len());
    }
    let character = rest.strip_prefix('\'')?;
    if character.starts_with('\\') {
        return Some(until(3, "'"));
    }
    // Without a second quote it is a lifetime.
    let length = character.chars().next()?.len_utf8();
    character[length..]
        .starts_with('\'')
        .then_some(1 + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_not_code() {
        for (line, expected) in [
            ("// told", false),
            ("    /// Returns `told`.", false),
            ("f(); // told", false),
            ("/* told */ f();", false),
            ("/* x */ told();", true),
            ("f(\"a {told}\");", false),
            ("f(\"\", told);", true),
            ("f(\"a \\\" told\");", false),
            ("f(\"a \\\\\", told);", true),
            ("f(\"http://a\", told);", true),
            ("f(b\"told\", c\"told\");", false),
            ("f(r\"a\\\", told);", true),
            ("f(r#\"a \" told\"#);", false),
            ("f(r##\"a \"# told\"##, told);", true),
            ("f('\"', told, '\"');", true),
            ("f('\\'', told, '\\'');", true),
            ("f('\\u{e9}', 'é', told);", true),
            ("f(\"without an end, told", false),
        ] {
            assert_eq!(code(line).contains("told"), expected, "{line}");
        }
    }
}
