//! The native code of a component.

use std::sync::Arc;
use strum::VariantArray;

use plugin_protocol::{Blueprint, Capability, ComponentFacts, GuestCode, GuestPlugin, HostCalls};
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use crate::export_types;
use crate::exports::ExportIndices;
use crate::plugin::Plugin;
use crate::plugin_handle::PluginHandle;
use crate::pool;
use crate::runtime_state::RuntimeState;
use crate::wasi_http;

/// An opened component.
pub(crate) struct Code {
    shared: Arc<RuntimeState>,
    component: Component,
    facts: ComponentFacts,
}

impl Code {
    pub(crate) fn new(shared: Arc<RuntimeState>, component: Component) -> Code {
        let facts = facts(&shared, &component);
        Code {
            shared,
            component,
            facts,
        }
    }
}

impl GuestCode for Code {
    fn facts(&self) -> &ComponentFacts {
        &self.facts
    }

    fn plugin(&self, blueprint: Blueprint, host: Arc<dyn HostCalls>) -> Arc<dyn GuestPlugin> {
        let RuntimeState { pool, linkers, .. } = &*self.shared;
        let plugin = Plugin::new(pool, linkers, &self.component, blueprint, host);
        Arc::new(PluginHandle {
            plugin: Arc::new(plugin),
            shared: Arc::clone(&self.shared),
        })
    }
}

fn facts(shared: &RuntimeState, component: &Component) -> ComponentFacts {
    let engine = &shared.pool.engine;
    let types = component.component_type();
    let interface = |(name, item): (&str, _)| {
        // Nothing can be reached through the import of a bare type, or of an instance that contains only types: a
        // component that exports an interface may import it for its types.
        let reaches = match item {
            ComponentItem::ComponentFunc(_) => true,
            ComponentItem::ComponentInstance(instance) => instance
                .exports(engine)
                .any(|(_, item)| !matches!(item.ty, ComponentItem::Type(_))),
            _ => false,
        };
        reaches.then(|| name.to_owned())
    };
    let imports = types.imports(engine);
    let imports = imports.filter_map(|(name, item)| interface((name, item.ty)));
    let mut facts = ComponentFacts {
        imports: imports.collect(),
        ..ComponentFacts::default()
    };
    // Link with everything that can be granted, whatever the actual grants: what does not fit then never fits.
    let all = Capability::VARIANTS.iter().copied().collect();
    let linked = shared.linkers.granted(engine, &all, |linker| {
        let pre = linker.instantiate_pre(component)?;
        // With our resources in place of those that it imports.
        Ok((pre, linker.substituted_component_type(component)?))
    });
    match linked {
        Ok((pre, types)) => {
            let exports = ExportIndices::new(&pre);
            facts.has_handler = exports.answers_requests();
            facts.actions = exports.actions();
            facts.link_error = export_types::mismatch(engine, &types)
                .or_else(|| wasi_http::mismatch(engine, &types));
        }
        Err(error) => facts.link_error = Some(format!("it cannot be linked: {error:#}")),
    }
    facts.places = pool::places(component);
    facts
}
