//! The dashboard: its pages in a headless Chromium, used as a person uses them.
//!
//! They need the Chromium that `SUPERVISOR_TEST_CHROMIUM` names (`cargo xtask test` sets it) and are skipped
//! without one. `SUPERVISOR_TEST_PICTURES` names a folder for pictures of the pages.

mod browser;
mod noticed;
mod session;
