//! The same request with values of other types in place of its constants: a statement that one of them leaves prepared
//! on a connection must not change the meaning of the next one.

use proptest::prelude::Rng as _;
use proptest::test_runner::TestRng;

use crate::steady;

/// The replacements of each constant.
const OTHERS: [&str; 6] = ["5", "5.0", "5.5", "'5'", "null", "true"];

/// Returns the requests and up to `of_one` variants of each, in a random order that is always the same.
#[must_use]
pub fn with_variants(requests: &[&str], of_one: usize) -> Vec<String> {
    let mut random = steady();
    let mut variants: Vec<String> = Vec::new();
    for request in requests {
        let mut some = variants_of(request);
        shuffle(&mut some, &mut random);
        some.truncate(of_one);
        variants.push((*request).to_owned());
        variants.extend(some);
    }
    shuffle(&mut variants, &mut random);
    variants
}

/// Returns the request with each of its constants replaced in turn by each of the others.
fn variants_of(request: &str) -> Vec<String> {
    let begin = request.find('?').unwrap_or(request.len());
    let mut variants = Vec::new();
    for (from, to) in constants(request, begin) {
        for other in OTHERS {
            variants.push(format!("{}{other}{}", &request[..from], &request[to..]));
        }
    }
    variants
}

/// Returns the positions of constants after `begin`.
fn constants(text: &str, begin: usize) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let mut found = Vec::new();
    let mut at = begin;
    while at < bytes.len() {
        let from = at;
        if bytes[at] == b'\'' {
            at += 1;
            while at < bytes.len() && bytes[at] != b'\'' {
                at += 1;
            }
            at = (at + 1).min(bytes.len());
            // `datetime'…'` is left unchanged.
            if from == 0 || !is_word(bytes[from - 1]) {
                found.push((from, at));
            }
        } else if is_word(bytes[at]) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
            let word = &text[from..at];
            let is_number = word
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.');
            let is_escape = from > 0 && bytes[from - 1] == b'%';
            if !is_escape && (is_number || matches!(word, "null" | "true" | "false")) {
                found.push((from, at));
            }
        } else {
            at += 1;
        }
    }
    found
}

fn shuffle(items: &mut [String], random: &mut TestRng) {
    for last in (1..items.len()).rev() {
        let with = random.next_u64() % (last as u64 + 1);
        items.swap(last, usize::try_from(with).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_a_request_are_found() {
        let text =
            "/device(7)?$filter=a9 eq 5.5 and b in ('x y',null) and c gt datetime'2026'&$top=3";
        let found: Vec<&str> = constants(text, text.find('?').expect("a query"))
            .into_iter()
            .map(|(from, to)| &text[from..to])
            .collect();
        assert_eq!(found, ["5.5", "'x y'", "null", "3"]);
    }
}
