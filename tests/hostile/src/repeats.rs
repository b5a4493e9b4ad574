//! Long texts, written short: `<<1000 times TEXT>>`. A `%i` in TEXT is replaced with the number of the repetition,
//! starting at 0.

use anyhow::{Context as _, Result};

/// Returns the text with all repetitions written out. Nested ones are not supported.
///
/// # Errors
/// If a repetition has no number or no end.
pub fn written_out(text: &str) -> Result<String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, repeated)) = rest.split_once("<<") {
        let (times, repeated) = repeated
            .split_once(" times ")
            .context("after `<<` a number and ` times ` are missing")?;
        let times: usize = times
            .parse()
            .with_context(|| format!("`<<{times} times`"))?;
        let (piece, after) = repeated.split_once(">>").context("a `>>` is missing")?;
        whole.push_str(before);
        if piece.contains("%i") {
            whole.extend((0..times).map(|number| piece.replace("%i", &number.to_string())));
        } else {
            whole.push_str(&piece.repeat(times));
        }
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_written_out() -> Result<()> {
        for (text, expected) in [
            ("a < b > c", "a < b > c"),
            ("[<<3 times ab>>]", "[ababab]"),
            ("<<2 times f%i >>,<<2 times x>>", "f0 f1 ,xx"),
        ] {
            assert_eq!(written_out(text)?, expected);
        }
        assert!(written_out("<<x times y>>").is_err());
        assert!(written_out("<<3 times y").is_err());
        Ok(())
    }
}
