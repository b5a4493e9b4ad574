//! The parts of a component's instance, counted before anything is compiled.

use compiled_code::{PLUGIN_MEMORY, PLUGIN_PARTS};
use wasmparser::{Validator, WasmFeatures};
use wasmtime_environ::component::{
    ComponentTypesBuilder, GlobalInitializer, InstantiateModule, Translator,
};
use wasmtime_environ::{Module, ScopeVec, Tunables};

/// What the author of a plugin with too many parts can do.
const FEWER_COMPONENTS: &str =
    "compose it of fewer components, each of which brings modules of its own";
/// What the author of a plugin with a large table can do.
const FEWER_FUNCTIONS: &str = "leave libraries out, because a table has an entry for each function that is called by its address";
/// What the author of a plugin with a large memory can do.
const LESS_DATA: &str = "give it less static data or a smaller stack";

/// The parts of one instance of a component.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InstanceParts {
    /// Instances of core modules, for all components in the file together.
    pub core_instances: usize,
    /// Linear memories.
    pub memories: usize,
    /// Tables.
    pub tables: usize,
    /// Bytes of the largest memory at its start.
    pub memory: u64,
    /// Entries of the largest table at its start.
    pub table_elements: u64,
}

impl InstanceParts {
    /// Counts the parts of an instance of the component `wasm`; `None` if it is not a valid component, or imports core
    /// modules, which no plugin gets.
    ///
    /// A hostile component can make this long and expensive, so only a confined process may count the parts of one that
    /// no compiler has accepted.
    #[must_use]
    pub fn count(wasm: &[u8]) -> Option<InstanceParts> {
        let (tunables, scope) = (Tunables::default_host(), ScopeVec::new());
        let mut validator = Validator::new_with_features(WasmFeatures::all());
        let mut types = ComponentTypesBuilder::new(&validator);
        let translator = Translator::new(&tunables, &mut validator, &mut types, &scope);
        let (component, modules) = translator.translate(wasm).ok()?;
        let mut parts = InstanceParts::default();
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

    /// Checks that the instance of a plugin fits into the pool of its runtime.
    ///
    /// # Errors
    /// All parts of which there are too many, with the limits for plugins.
    pub fn check(&self) -> wasmtime::Result<()> {
        let bounds = &PLUGIN_PARTS;
        let rows = [
            (
                "core instances",
                self.core_instances as u64,
                bounds.core_instances.into(),
                FEWER_COMPONENTS,
            ),
            (
                "memories",
                self.memories as u64,
                bounds.memories.into(),
                FEWER_COMPONENTS,
            ),
            (
                "tables",
                self.tables as u64,
                bounds.tables.into(),
                FEWER_COMPONENTS,
            ),
            (
                "entries in a table at its start",
                self.table_elements,
                bounds.table_elements as u64,
                FEWER_FUNCTIONS,
            ),
            (
                "bytes of memory at its start",
                self.memory,
                PLUGIN_MEMORY as u64,
                LESS_DATA,
            ),
        ];
        let mut reasons = Vec::new();
        let mut remedies = Vec::new();
        for (what, has, most, remedy) in rows.into_iter().filter(|(_, has, most, _)| has > most) {
            reasons.push(format!(
                "{has} {what}, but a plugin may have at most {most}"
            ));
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
        if reasons.is_empty() {
            return Ok(());
        }
        let (reasons, remedies) = (reasons.join(", and "), remedies.join(", and "));
        Err(wasmtime::Error::msg(format!(
            "it has {reasons}: {remedies}"
        )))
    }

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
