//! The file of a caller: what it sends over a connection, byte by byte as it stands, and what it is answered.
//!
//! - `> TEXT` sends a line, with its end; `>> TEXT` sends a text without one; `~> TEXT` sends it slowly, one byte per
//!   round of probes. In all of them `\r`, `\n`, `\t`, `\\` and `\xNN` stand for bytes, `{key}` for the device's key,
//!   `{host}` for its address, `{length}` for the number of bytes of all texts after the next `>` without a text (a
//!   body), and `<<N times TEXT>>` for a long one.
//! - `< STATUS TEXT` waits for an answer, `< STATUS|STATUS TEXT` for one of several; `< closed` for the connection's
//!   end; `< anything` for an answer or the end.
//! - `half` ends the caller's side; `hold` stays for a while; `reset` breaks the connection.

use anyhow::{Context as _, Result, bail};

use crate::repeats::written_out;

/// The next act of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Send(Vec<u8>),
    /// Byte by byte.
    SendSlowly(Vec<u8>),
    Expect(Expectation),
    HalfClose,
    Hold,
    Reset,
}

/// What a caller expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// One of these statuses, with a text in the head or body. With `closed` among them the connection may end instead.
    Answer {
        statuses: Vec<u16>,
        or_closed: bool,
        text: String,
    },
    /// An answer or the end of the connection.
    Anything,
}

/// The values of placeholders, which are known once the device runs.
#[derive(Debug, Clone)]
pub struct Placeholders<'a> {
    pub key: &'a str,
    /// Address and port.
    pub host: &'a str,
}

/// Parses the acts of a script.
///
/// # Errors
/// If a line is not an act.
pub fn parse(text: &str, placeholders: &Placeholders<'_>) -> Result<Vec<Act>> {
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let mut acts = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let act = act(line, &lines[number..], placeholders);
        acts.extend(act.with_context(|| format!("`{line}`"))?);
    }
    Ok(joined(acts))
}

fn act(line: &str, rest: &[&str], placeholders: &Placeholders<'_>) -> Result<Option<Act>> {
    let sent = |text: &str| -> Result<Vec<u8>> {
        let mut text = text.to_owned();
        if text.contains("{length}") {
            text = text.replace("{length}", &body_length(rest, placeholders)?.to_string());
        }
        bytes(&text, placeholders)
    };
    let (word, text) = line.split_once(' ').unwrap_or((line, ""));
    Ok(Some(match word {
        ">" => {
            let mut line = sent(text)?;
            line.extend(b"\r\n");
            Act::Send(line)
        }
        ">>" => Act::Send(sent(text)?),
        "~>" => Act::SendSlowly(sent(text)?),
        "<" => Act::Expect(expected(text)?),
        "half" => Act::HalfClose,
        "hold" => Act::Hold,
        "reset" => Act::Reset,
        _ => bail!("begins with none of `>`, `>>`, `~>`, `<`, `half`, `hold`, `reset`"),
    }))
}

/// Returns how many bytes are sent after the head that `rest` begins in, up to the next act of another kind.
fn body_length(rest: &[&str], placeholders: &Placeholders<'_>) -> Result<usize> {
    let mut length = 0;
    let body = rest.iter().skip_while(|line| line.trim() != ">").skip(1);
    for line in body {
        match line.split_once(' ').unwrap_or((line, "")) {
            (">>" | "~>", text) => length += bytes(text, placeholders)?.len(),
            (">", text) => length += bytes(text, placeholders)?.len() + 2,
            _ => break,
        }
    }
    Ok(length)
}

fn expected(text: &str) -> Result<Expectation> {
    let (statuses, text) = text.split_once(' ').unwrap_or((text, ""));
    if statuses == "anything" {
        return Ok(Expectation::Anything);
    }
    let (closed, statuses): (Vec<_>, Vec<_>) =
        statuses.split('|').partition(|status| *status == "closed");
    let statuses = statuses.into_iter().map(str::parse);
    Ok(Expectation::Answer {
        statuses: statuses.collect::<Result<_, _>>()?,
        or_closed: !closed.is_empty(),
        text: text.to_owned(),
    })
}

fn bytes(text: &str, placeholders: &Placeholders<'_>) -> Result<Vec<u8>> {
    let text = written_out(text)?
        .replace("{key}", placeholders.key)
        .replace("{host}", placeholders.host);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let (escape, after) = rest.split_first().context("ends with `\\`")?;
        rest = after;
        bytes.push(match escape {
            b'r' => b'\r',
            b'n' => b'\n',
            b't' => b'\t',
            b'\\' => b'\\',
            b'x' => {
                let (digits, after) = rest.split_at_checked(2).context("`\\x` takes two digits")?;
                rest = after;
                u8::from_str_radix(std::str::from_utf8(digits)?, 16)?
            }
            other => bail!("`\\{}` stands for nothing", char::from(*other)),
        });
    }
    Ok(bytes)
}

/// Joins consecutive texts into one, as a client sends them.
fn joined(acts: Vec<Act>) -> Vec<Act> {
    let mut joined: Vec<Act> = Vec::new();
    for act in acts {
        match (joined.last_mut(), act) {
            (Some(Act::Send(before)), Act::Send(more)) => before.extend(more),
            (_, act) => joined.push(act),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_sent_as_it_stands() -> Result<()> {
        let placeholders = Placeholders {
            key: "k",
            host: "127.0.0.1:1",
        };
        let text = "> POST /x HTTP/1.1\n> a: {key}\n> content-length: {length}\n>\n>> <<2 times a\\x00>>\n< 400|closed no\nhalf\n";
        let expected = vec![
            Act::Send(b"POST /x HTTP/1.1\r\na: k\r\ncontent-length: 4\r\n\r\na\0a\0".to_vec()),
            Act::Expect(Expectation::Answer {
                statuses: vec![400],
                or_closed: true,
                text: "no".to_owned(),
            }),
            Act::HalfClose,
        ];
        assert_eq!(parse(text, &placeholders)?, expected);
        for wrong in ["send x", "> \\q", "> \\x1", "< abc", ">> <<x times y>>"] {
            assert!(parse(wrong, &placeholders).is_err(), "{wrong}");
        }
        Ok(())
    }
}
