//! The parts of a component's instance, counted before anything is compiled.

use compiled_code::{PLUGIN_MEMORY, PLUGIN_PARTS};
use wasmparser::{Validator, WasmFeatures};
use wasmtime_environ::component::{
    ComponentTypesBuilder, GlobalInitializer, InstantiateModule, Translator,
};
use wasmtime_environ::{Module, ScopeVec, Tunables};

/// The parts of one instance.
#[derive(Default)]
struct Parts {
    core_instances: usize,
    memories: usize,
    tables: usize,
    /// Bytes of the largest memory at its start.
    memory: u64,
    /// Entries of the largest table at its start.
    table_elements: u64,
}

/// Checks that an instance of the plugin `wasm` fits into the pool of its runtime.
///
/// # Errors
/// All parts of which there are too many, with the limits for plugins. An invalid component passes: the compiler
/// reports what is wrong with it.
pub(crate) fn check_parts(wasm: &[u8]) -> wasmtime::Result<()> {
    let Some(parts) = parts(wasm) else {
        return Ok(());
    };
    let bounds = &PLUGIN_PARTS;
    let rows = [
        (
            "core instances",
            parts.core_instances as u64,
            bounds.core_instances.into(),
        ),
        ("memories", parts.memories as u64, bounds.memories.into()),
        ("tables", parts.tables as u64, bounds.tables.into()),
        (
            "entries in a table at its start",
            parts.table_elements,
            bounds.table_elements as u64,
        ),
        (
            "bytes of memory at its start",
            parts.memory,
            PLUGIN_MEMORY as u64,
        ),
    ];
    let too_many = rows.iter().filter(|(_, has, most)| has > most);
    let too_many: Vec<_> = too_many
        .map(|(what, has, most)| format!("{has} {what}, but a plugin may have at most {most}"))
        .collect();
    if too_many.is_empty() {
        return Ok(());
    }
    let too_many = too_many.join(", and ");
    Err(wasmtime::Error::msg(format!("it has {too_many}")))
}

/// Counts the parts; `None` if it is not a valid component, or imports core modules, which no plugin gets.
fn parts(wasm: &[u8]) -> Option<Parts> {
    let (tunables, scope) = (Tunables::default_host(), ScopeVec::new());
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut types = ComponentTypesBuilder::new(&validator);
    let translator = Translator::new(&tunables, &mut validator, &mut types, &scope);
    let (component, modules) = translator.translate(wasm).ok()?;
    let mut parts = Parts::default();
    for initializer in &component.component.initializers {
        if let GlobalInitializer::InstantiateModule(instance, _) = initializer {
            let InstantiateModule::Static(index, _) = instance else {
                return None;
            };
            parts.add(&modules.get(*index)?.module);
        }
    }
    Some(parts)
}

impl Parts {
    fn add(&mut self, module: &Module) {
        self.core_instances += 1;
        self.memories += module.num_defined_memories();
        self.tables += module.num_defined_tables();
        for memory in module.memories.values().skip(module.num_imported_memories) {
            let bytes = memory.minimum_byte_size().unwrap_or(u64::MAX);
            self.memory = self.memory.max(bytes);
        }
        for table in module.tables.values().skip(module.num_imported_tables) {
            self.table_elements = self.table_elements.max(table.limits.min);
        }
    }
}
