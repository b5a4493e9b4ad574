//! Random values.

use crate::refusal::{WriteError, WriteResult};

fn bytes<const N: usize>() -> WriteResult<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        WriteError::Broken(format!(
            "the operating system provided no random bytes: {error}"
        ))
    })?;
    Ok(bytes)
}

/// Returns the 32 digits of a UUID of version 4.
pub(crate) fn uuid() -> WriteResult<String> {
    let mut bytes = bytes::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(hex::encode(bytes))
}

/// Returns 32 hexadecimal digits.
pub(crate) fn digits() -> WriteResult<String> {
    Ok(hex::encode(bytes::<16>()?))
}

/// Returns a name for a device: `calm-river`. Several devices may have the same.
pub(crate) fn device_name() -> WriteResult<String> {
    Ok(format!("{}-{}", word_of(ADJECTIVES)?, word_of(NOUNS)?))
}

fn word_of(words: &str) -> WriteResult<&str> {
    let words: Vec<&str> = words.split(' ').collect();
    let [byte] = bytes()?;
    Ok(words[usize::from(byte) % words.len()])
}

const ADJECTIVES: &str = "\
    amber autumn bold brave bright brisk calm clear cool coral crimson damp dawn deep dry dusty \
    early empty falling fancy fast fragrant frosty gentle golden green hidden icy jolly keen \
    late light little lively lucky mellow misty muddy nimble noble old patient plain proud \
    purple quick quiet rough round shiny shy silent silver small snowy solid spring still summer \
    swift warm wild winter young";

const NOUNS: &str = "\
    bird breeze brook bush butterfly canyon cedar cherry cliff cloud coast comet creek dawn dew \
    dream dust feather fern field fire firefly flower fog forest frog frost glade glitter grass \
    harbor haze hill island lake leaf maple meadow moon moss mountain night ocean orchard otter \
    paper pebble pine pond rain reef ridge river sea shadow sky sound star stone sun thunder \
    tree valley wave";

#[cfg(test)]
mod tests {
    use resources::{Branding, Check};

    #[test]
    fn a_made_up_uuid_is_one() {
        let uuid = super::uuid().unwrap();
        assert!(
            Check::FleetUuid
                .apply(&uuid, &Branding::default())
                .is_some(),
            "{uuid}"
        );
    }

    #[test]
    fn a_made_up_name_is_two_words() {
        let name = super::device_name().unwrap();
        assert_eq!(
            name.split('-').filter(|word| !word.is_empty()).count(),
            2,
            "{name}"
        );
    }
}
