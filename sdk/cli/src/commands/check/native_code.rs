//! The size of a plugin's native code, and what an instance of it has.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use compiled_code::{PLUGIN_PARTS, Profile};
use serde_json::{Value, json};
use wasmtime::Engine;

use crate::output::size;

/// The native code of a plugin.
pub(super) struct NativeCode {
    /// The size of the code, in bytes.
    bytes: u64,
    memories: u32,
    tables: u32,
    /// The memory of an instance at its start, in bytes.
    memory: u64,
    /// The entries of the largest table at its start.
    table_elements: u64,
}

impl NativeCode {
    /// Reads the compiled code in this file.
    ///
    /// # Errors
    /// It cannot be read, or was compiled by another version.
    pub(super) fn read(file: &Path) -> Result<NativeCode> {
        let unreadable = || format!("cannot read `{}`", file.display());
        let bytes = std::fs::metadata(file).with_context(unreadable)?.len();
        let engine = Engine::new(&sandbox::engine_config(Profile::Plugin))?;
        let component = sandbox::deserialize(&engine, file).map_err(anyhow::Error::from);
        let component = component.with_context(unreadable)?;
        let parts = component.resources_required();
        let parts = parts.context("it is not known what an instance has")?;
        Ok(NativeCode {
            bytes,
            memories: parts.num_memories,
            tables: parts.num_tables,
            memory: parts.max_initial_memory_size.unwrap_or_default(),
            table_elements: parts.max_initial_table_size.unwrap_or_default(),
        })
    }

    /// Describes it in two lines; `compiled_in` is how long compiling took, if it was compiled just now.
    pub(super) fn lines(&self, compiled_in: Option<Duration>) -> [String; 2] {
        let compiled_in =
            compiled_in.map(|time| format!(", compiled in {:.1} s", time.as_secs_f64()));
        let noun = |count, one, many| if count == 1 { one } else { many };
        #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
        let mib = self.memory as f64 / f64::from(1 << 20);
        [
            format!(
                "{} of native code{}",
                size(self.bytes),
                compiled_in.unwrap_or_default()
            ),
            format!(
                "{} {} of {}, {} {} of {}, {} entries of {} in a table, and {mib:.1} MiB at the start of a call",
                self.memories,
                noun(self.memories, "memory", "memories"),
                PLUGIN_PARTS.memories,
                self.tables,
                noun(self.tables, "table", "tables"),
                PLUGIN_PARTS.tables,
                self.table_elements,
                PLUGIN_PARTS.table_elements,
            ),
        ]
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "bytes": self.bytes, "memories": self.memories, "tables": self.tables,
            "memory_at_start": self.memory, "table_elements_at_start": self.table_elements,
        })
    }
}
