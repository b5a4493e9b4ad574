//! Functions that earlier compilations have translated, for components that contain them again.
//!
//! Each version of a plugin in Python contains the same interpreter, whose functions are nearly all that there is to
//! compile. Whoever starts the compiler passes it the functions of earlier compilations, and keeps those that it
//! returns; only the compiler reads and writes this list.
//!
//! A function is stored as 32 bytes of its key (Cranelift's digest of everything that determines its code), the length
//! of its code in 4 bytes, the least significant one first, and its code in Cranelift's form.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;

/// The length of a key in bytes.
const KEY: usize = 32;
/// The length of a length in bytes.
const LENGTH: usize = 4;
/// A function whose code is shorter than this, in bytes, is not stored: translating it again takes little time.
const LEAST: usize = 512;

/// The functions of earlier compilations, and those of the present one.
#[derive(Debug)]
pub struct FunctionList {
    stored: Vec<u8>,
    /// Where in `stored` the code of a function is.
    places: HashMap<[u8; KEY], Range<usize>>,
    /// The functions that were not among them, in the same form, and how many bytes of them are kept.
    new: Mutex<Vec<u8>>,
    most: usize,
}

impl FunctionList {
    /// Reads stored functions, up to the first that is not complete. Of the new ones, keeps at most `most` bytes.
    #[must_use]
    pub fn new(stored: Vec<u8>, most: usize) -> FunctionList {
        let mut places = HashMap::new();
        let mut begin = 0;
        while let Some((key, code)) = entry(&stored, begin) {
            begin = code.end;
            places.insert(key, code);
        }
        FunctionList {
            stored,
            places,
            new: Mutex::default(),
            most,
        }
    }

    /// Returns the code of the function with this key, if an earlier compilation has translated it.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self.places.get(key)?;
        self.stored.get(place.clone())
    }

    /// Adds a function, for later compilations. Returns whether it is kept: not if it is short, or if the limit is reached.
    pub fn insert(&self, key: &[u8], code: &[u8]) -> bool {
        let Ok(length) = u32::try_from(code.len()) else {
            return false;
        };
        let mut new = self.new.lock();
        let size = KEY + LENGTH + code.len();
        if key.len() != KEY || code.len() < LEAST || new.len() + size > self.most {
            return false;
        }
        new.extend_from_slice(key);
        new.extend_from_slice(&length.to_le_bytes());
        new.extend_from_slice(code);
        true
    }

    /// Takes out the functions that this compilation has added, in the form in which they are stored.
    #[must_use]
    pub fn take_new(&self) -> Vec<u8> {
        std::mem::take(&mut *self.new.lock())
    }
}

/// Reads the function at `begin`: its key, and where its code is.
fn entry(stored: &[u8], begin: usize) -> Option<([u8; KEY], Range<usize>)> {
    let (key, rest) = stored.get(begin..)?.split_first_chunk::<KEY>()?;
    let (length, rest) = rest.split_first_chunk::<LENGTH>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    rest.get(..length)?;
    let code = begin + KEY + LENGTH;
    Some((*key, code..code + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compilation_finds_the_functions_of_earlier_ones() {
        let first = FunctionList::new(Vec::new(), usize::MAX);
        let (one, two) = ([1; LEAST], [2; LEAST + 1]);
        assert!(first.insert(&[1; KEY], &one));
        assert!(first.insert(&[2; KEY], &two));
        assert_eq!(
            first.get(&[1; KEY]),
            None,
            "not during the same compilation"
        );
        let second = FunctionList::new(first.take_new(), usize::MAX);
        assert_eq!(second.get(&[1; KEY]), Some(&one[..]));
        assert_eq!(second.get(&[2; KEY]), Some(&two[..]));
        assert_eq!(second.get(&[3; KEY]), None);
        assert_eq!(second.get(&[1; KEY - 1]), None);
        assert!(second.take_new().is_empty());
    }

    #[test]
    fn stored_functions_end_at_the_first_that_is_not_complete() {
        let functions = FunctionList::new(Vec::new(), usize::MAX);
        functions.insert(&[1; KEY], &[1; LEAST]);
        let whole = functions.take_new();
        functions.insert(&[2; KEY], &[2; LEAST]);
        let both = [whole.clone(), functions.take_new()].concat();
        for length in 0..both.len() {
            let functions = FunctionList::new(both[..length].to_vec(), usize::MAX);
            let has_first = functions.get(&[1; KEY]).is_some();
            assert_eq!(has_first, length >= whole.len(), "{length}");
            assert_eq!(functions.get(&[2; KEY]), None, "{length}");
        }
        // A length beyond the end, and beyond everything.
        let mut long = whole;
        long[KEY..KEY + LENGTH].fill(0xff);
        assert_eq!(FunctionList::new(long, usize::MAX).get(&[1; KEY]), None);
    }

    #[test]
    fn short_functions_and_those_over_the_limit_are_not_kept() {
        let functions = FunctionList::new(Vec::new(), 2 * (KEY + LENGTH + LEAST));
        assert!(!functions.insert(&[0; KEY], &[0; LEAST - 1]));
        assert!(!functions.insert(&[0; KEY - 1], &[0; LEAST]));
        for (number, is_kept) in [(1, true), (2, true), (3, false)] {
            assert_eq!(functions.insert(&[number; KEY], &[0; LEAST]), is_kept);
        }
    }
}
