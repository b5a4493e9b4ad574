//! The device of a test, as its steps use it.

use plugin_manifest::Manifest;
use plugin_test_host::RunningHost;

use crate::device_file::CallRecords;

/// A device that runs the plugin of a test.
pub(crate) struct TestDevice<'a> {
    pub(crate) host: &'a RunningHost,
    /// The plugin's manifest.
    pub(crate) manifest: &'a Manifest,
    /// What the plugin has called and done besides answering.
    pub(crate) records: &'a CallRecords,
}
