//! The size of a plugin's native code, and what an instance of it has.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use compiled_code::PLUGIN_PARTS;
use plugin_manifest::WrittenLimits;
use plugins::DEFAULT_SLOTS;
use sandbox::InstanceParts;
use serde_json::{Value, json};

use crate::output::size;

/// The native code of a plugin.
pub(super) struct NativeCode {
    /// The size of the code, in bytes.
    bytes: u64,
    /// What an instance has.
    parts: InstanceParts,
}

impl NativeCode {
    /// Reads the size of the compiled code in `file`, and counts the parts of the component `wasm`, which the compiler
    /// has accepted.
    ///
    /// # Errors
    /// The file cannot be read, or the component is invalid.
    pub(super) fn read(file: &Path, wasm: &[u8]) -> Result<NativeCode> {
        let unreadable = || format!("cannot read `{}`", file.display());
        let bytes = std::fs::metadata(file).with_context(unreadable)?.len();
        let parts = InstanceParts::count(wasm);
        let parts = parts.context("it is not known what an instance has")?;
        Ok(NativeCode { bytes, parts })
    }

    /// Describes it in two lines; `compiled_in` is how long compiling took, if it was compiled just now.
    pub(super) fn lines(&self, compiled_in: Option<Duration>) -> [String; 2] {
        let compiled_in =
            compiled_in.map(|time| format!(", compiled in {:.1} s", time.as_secs_f64()));
        let noun = |count, one, many| if count == 1 { one } else { many };
        let parts = &self.parts;
        #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
        let mib = parts.memory as f64 / f64::from(1 << 20);
        [
            format!(
                "{} of native code{}",
                size(self.bytes),
                compiled_in.unwrap_or_default()
            ),
            format!(
                "{} core {} of {}, {} {} of {}, {} {} of {}, {} entries of {} in a table, and {mib:.1} MiB at the \
                 start of a call",
                parts.core_instances,
                noun(parts.core_instances, "instance", "instances"),
                PLUGIN_PARTS.core_instances,
                parts.memories,
                noun(parts.memories, "memory", "memories"),
                PLUGIN_PARTS.memories,
                parts.tables,
                noun(parts.tables, "table", "tables"),
                PLUGIN_PARTS.tables,
                parts.table_elements,
                PLUGIN_PARTS.table_elements,
            ),
        ]
    }

    /// Says how many calls a device of 32 bits lets run at a time, if that is fewer than the `concurrency` of the limits.
    pub(super) fn fewer_calls(&self, limits: &WrittenLimits) -> Option<String> {
        let memories = self.parts.memories.max(1);
        let calls = (DEFAULT_SLOTS / 2 / memories).max(1);
        let limits = limits.over(&WrittenLimits::DEFAULTS);
        let concurrency = limits.concurrency.unwrap_or_default();
        (calls < concurrency as usize).then(|| {
            format!(
                "{calls} calls at a time on a device of 32 bits, rather than the {concurrency} of `concurrency`: a call \
                 takes one of its {DEFAULT_SLOTS} places for each of the {memories} memories, and a plugin gets at most \
                 half of the places"
            )
        })
    }

    pub(super) fn json(&self) -> Value {
        let parts = &self.parts;
        json!({
            "bytes": self.bytes, "core_instances": parts.core_instances, "memories": parts.memories,
            "tables": parts.tables, "memory_at_start": parts.memory,
            "table_elements_at_start": parts.table_elements,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the code of a component with this text.
    fn native_code(text: &str) -> NativeCode {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0_u8; 36_400]).unwrap();
        let wasm = wat::parse_str(format!("(component {text})")).unwrap();
        NativeCode::read(file.path(), &wasm).unwrap()
    }

    #[test]
    fn a_component_with_several_memories_gets_fewer_calls() {
        let module = "(core module $m (memory 1)) (core instance (instantiate $m))";
        let with = |memories: usize| {
            native_code(&format!(
                "(core module $m (memory 1)) {}",
                "(core instance (instantiate $m))".repeat(memories)
            ))
        };
        let limits = |text: &str| toml::from_str::<WrittenLimits>(text).unwrap();
        assert_eq!(native_code(module).fewer_calls(&limits("")), None);
        assert_eq!(with(2).fewer_calls(&limits("")), None);
        assert_eq!(with(3).fewer_calls(&limits("concurrency = 5")), None);
        assert_eq!(
            with(3).fewer_calls(&limits("")).as_deref(),
            Some(
                "5 calls at a time on a device of 32 bits, rather than the 8 of `concurrency`: a call takes one of its 32 \
                 places for each of the 3 memories, and a plugin gets at most half of the places"
            )
        );
        let most = native_code(module).fewer_calls(&limits("concurrency = 16"));
        assert_eq!(most, None);
        // A module without memory takes a place as well.
        let none = native_code("(core module $m) (core instance (instantiate $m))");
        assert_eq!(none.fewer_calls(&limits("")), None);
    }

    #[test]
    fn all_parts_of_an_instance_are_shown_with_the_largest_number_that_a_plugin_may_have() {
        let module =
            "(core module $m (memory 24) (table 7 funcref)) (core instance (instantiate $m))";
        let code = native_code(module);
        let [size, parts] = code.lines(None);
        assert_eq!(size, "36 KB of native code");
        assert_eq!(
            parts,
            "1 core instance of 64, 1 memory of 4, 1 table of 8, 7 entries of 20000 in a table, and 1.5 MiB at the \
             start of a call"
        );

        // A module without memory, and the component in it twice.
        let code = native_code(&format!(
            "(component $c {module} (core module $n) (core instance (instantiate $n))) \
             (instance (instantiate $c)) (instance (instantiate $c))"
        ));
        let [size, parts] = code.lines(Some(Duration::from_millis(1200)));
        assert_eq!(size, "36 KB of native code, compiled in 1.2 s");
        let expected = "4 core instances of 64, 2 memories of 4, 2 tables of 8, 7 entries of ";
        assert!(parts.starts_with(expected), "{parts}");
        assert_eq!(
            code.json(),
            json!({
                "bytes": 36_400, "core_instances": 4, "memories": 2, "tables": 2, "memory_at_start": 24 * 65_536,
                "table_elements_at_start": 7,
            })
        );
    }
}
