//! Numbers with units: sizes, durations, CPUs.

use serde_json::Value;

/// Reads a whole number, as a number or in digits.
pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            // Beyond 2^53 a float no longer names one whole number.
            number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_991.0)
                .map(|float| float as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Reads bytes: a number, or `<int>[b|k|m|g][b]` with a factor of 1024, in any case
/// (docs/spec/device.md#compose-fields).
pub(super) fn size(value: &Value) -> Option<u64> {
    let Value::String(text) = value else {
        return integer(value).and_then(|bytes| bytes.try_into().ok());
    };
    let text = text.trim().to_ascii_lowercase();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit {
        "" | "b" | "bb" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(factor)
        // Engines accept signed numbers.
        .filter(|bytes| i64::try_from(*bytes).is_ok())
}

/// Reads nanoseconds: numbers with units one after the other (`1m30s`, `1.5h`), or a bare number of
/// seconds.
pub(super) fn duration(value: &Value) -> Option<i64> {
    const SECOND: i128 = 1_000_000_000;
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    if text.is_empty() {
        return None;
    }
    let mut rest = text.as_str();
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            "d" => 86_400 * SECOND,
            // A number without a unit must be the whole text.
            "" if number.len() == text.len() => SECOND,
            _ => return None,
        };
        total = total.checked_add(decimal(number, unit)?)?;
        rest = after;
    }
    i64::try_from(total).ok()
}

/// Returns `number`, which may have a fraction, times `unit`; digits finer than the result are cut
/// off.
fn decimal(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || whole.len() > 20 || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut total = whole.checked_mul(unit)?;
    let mut part = unit;
    for digit in fraction.bytes().take(15) {
        part /= 10;
        total += part * i128::from(digit - b'0');
    }
    Some(total)
}

/// Reads CPUs in billionths.
pub(super) fn nano_cpus(value: &Value) -> Option<i64> {
    let cpus: f64 = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // More than any machine has, and far from where the conversion loses digits.
    (0.0..=1_000_000.0)
        .contains(&cpus)
        .then(|| (cpus * 1e9).round() as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_count_in_1024() {
        for (given, bytes) in [
            (json!("64m"), Some(67_108_864)),
            (json!("64MB"), Some(67_108_864)),
            (json!("1k"), Some(1024)),
            (json!("2g"), Some(2_147_483_648)),
            (json!("100b"), Some(100)),
            (json!("100"), Some(100)),
            (json!(100), Some(100)),
            (json!("1.5g"), None),
            (json!("-1"), None),
            (json!(-1), None),
            (json!("m"), None),
            (json!("1t"), None),
            (json!("99999999999g"), None),
            (json!([]), None),
        ] {
            assert_eq!(size(&given), bytes, "{given}");
        }
    }

    #[test]
    fn durations_are_read_as_go_writes_them() {
        const S: i64 = 1_000_000_000;
        for (given, nanoseconds) in [
            (json!("10s"), Some(10 * S)),
            (json!("1m30s"), Some(90 * S)),
            (json!("1.5s"), Some(1_500_000_000)),
            (json!("1h0.5m"), Some(3630 * S)),
            (json!(".5s"), Some(S / 2)),
            (json!("250ms"), Some(S / 4)),
            (json!("3us"), Some(3_000)),
            (json!("3µs"), Some(3_000)),
            (json!("7ns"), Some(7)),
            (json!("1d"), Some(86_400 * S)),
            (json!("10"), Some(10 * S)),
            (json!(10), Some(10 * S)),
            (json!(0.5), Some(S / 2)),
            (json!("0s"), Some(0)),
            (json!(""), None),
            (json!("s"), None),
            (json!("."), None),
            (json!("1.2.3s"), None),
            (json!("10s5"), None),
            (json!("-1s"), None),
            (json!("10 s"), None),
            (json!("1y"), None),
            (json!("99999999999999999999h"), None),
            (json!("9999999999h"), None),
            (json!(null), None),
        ] {
            assert_eq!(duration(&given), nanoseconds, "{given}");
        }
    }

    #[test]
    fn cpus_are_rounded_to_billionths() {
        for (given, nano) in [
            (json!(1.5), Some(1_500_000_000)),
            (json!("0.5"), Some(500_000_000)),
            (json!("0.0000000014"), Some(1)),
            (json!(2), Some(2_000_000_000)),
            (json!(-1), None),
            (json!("NaN"), None),
            (json!("inf"), None),
            (json!("x"), None),
            (json!(true), None),
        ] {
            assert_eq!(nano_cpus(&given), nano, "{given}");
        }
    }
}
