//! Lists in messages from where plugins run, for `#[serde(with = "…")]`. A message is limited in bytes, but two of them
//! can stand for a header with two empty texts, which takes 48 in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _, SeqAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserializer, Serialize, Serializer};

/// The most entries of such a list: far more than any that is accepted.
pub const LIST: usize = 16 << 10;

/// Writes a list.
///
/// # Errors
/// If it has more than [`LIST`] entries, so that the other end would not read it.
pub fn serialize<T: Serialize, S: Serializer>(
    list: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if list.len() > LIST {
        return Err(S::Error::custom(format!(
            "a list of {} entries",
            list.len()
        )));
    }
    list.serialize(serializer)
}

/// Reads a list.
///
/// # Errors
/// If it has more than [`LIST`] entries; no more than these are read.
pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(ListVisitor(PhantomData))
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {LIST} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if list.len() == LIST {
                return Err(A::Error::custom(format!("a list of over {LIST} entries")));
            }
            list.push(entry);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Message(#[serde(with = "super")] Vec<String>);

    #[test]
    fn a_list_is_written_and_read_up_to_its_longest() {
        let text = |entries: usize| format!("[{}]", vec!["\"\""; entries].join(","));
        let read: Message = serde_json::from_str(&text(LIST)).unwrap();
        assert_eq!(read.0.len(), LIST);
        assert_eq!(serde_json::to_string(&read).unwrap(), text(LIST));
        let longer = serde_json::from_str::<Message>(&text(LIST + 1));
        assert!(longer.is_err());
        assert!(serde_json::to_string(&Message(vec![String::new(); LIST + 1])).is_err());
    }
}
