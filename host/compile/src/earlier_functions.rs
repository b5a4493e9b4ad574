//! Functions that earlier compilations have translated, as Cranelift asks for them.

use std::borrow::Cow;

use compiled_code::FunctionList;
use wasmtime::CacheStore;

/// The functions of earlier compilations, and those that the present one adds.
#[derive(Debug)]
pub(crate) struct EarlierFunctions(pub(crate) FunctionList);

impl CacheStore for EarlierFunctions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        self.0.get(key).map(Cow::Borrowed)
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        self.0.insert(key, &value)
    }
}
