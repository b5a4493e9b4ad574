//! What credentials are held to in hostile hands: tests are named after the findings that they close
//! (docs/security.md).

mod refusals;
mod sign_ins;
