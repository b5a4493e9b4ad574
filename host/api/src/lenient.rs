//! Numbers as clients of this API have always been allowed to write them (device behaviour 1.0). For
//! flags see [`model::truthy`].

/// A whole number in digits, with a minus sign or with `.0` behind it; `None` for all else.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_digits_with_a_sign_and_zeros_behind_the_point() {
        for (given, read) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("5.000", Some(5)),
            ("-3", Some(-3)),
            ("0", Some(0)),
            ("5a", None),
            ("0x5", None),
            ("1.5", None),
            ("5.", None),
            (".0", None),
            ("-", None),
            ("+5", None),
            (" 5", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(integer(given), read, "{given:?}");
        }
    }
}
