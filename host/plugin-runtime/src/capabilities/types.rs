//! `wit/types.wit`: types only.

use crate::bindings::platform::supervisor::types;
use crate::guest::Guest;

impl types::Host for &mut Guest {}
