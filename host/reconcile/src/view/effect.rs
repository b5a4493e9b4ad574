//! The effects of steps, added to the view before they are listed.

use model::{Container, ContainerId, ContainerState, EngineKind, Image, ImageRef};
use plan::{ComponentKind, CurrentComponent};

use super::{ObjectKind, View};

/// The effect of a step.
#[derive(Debug)]
pub(crate) enum Effect {
    Pulled(Image),
    ImageRemoved(EngineKind, ImageRef),
    ComponentMade(ComponentKind, CurrentComponent),
    ComponentRemoved(ComponentKind, EngineKind, String),
    ContainerMade(Container),
    ContainerIs(EngineKind, ContainerId, ContainerState),
    ContainerNamed(EngineKind, ContainerId, String),
    ContainerRemoved(EngineKind, ContainerId),
    /// The network of the API exists and belongs to another supervisor.
    ApiNetworkIsShared(EngineKind),
}

impl View {
    /// Adds the effect of a finished step.
    pub(crate) fn apply(&mut self, effect: Effect) {
        self.time += 1;
        let time = self.time;
        let (engine, kind) = effect.about();
        let Some(view) = self.engines.get_mut(&engine) else {
            return;
        };
        view.patched.insert(kind, time);
        view.unverified.insert(kind);
        let objects = &mut view.objects;
        match effect {
            Effect::ApiNetworkIsShared(engine) => {
                self.shares_api_network.insert(engine);
            }
            Effect::Pulled(image) => {
                // A reference names one image: the previous one has lost it.
                for other in &mut objects.images {
                    other
                        .references
                        .retain(|reference| !image.references.contains(reference));
                }
                objects.images.retain(|other| other.id != image.id);
                objects.images.push(image);
            }
            Effect::ImageRemoved(_, removed) => {
                for image in &mut objects.images {
                    image.references.retain(|reference| *reference != removed);
                }
                objects.images.retain(|image| !image.references.is_empty());
            }
            Effect::ComponentMade(kind, component) => {
                let components = objects.components_mut(kind);
                components.retain(|other| other.name != component.name);
                components.push(component);
            }
            Effect::ComponentRemoved(kind, _, name) => {
                let components = objects.components_mut(kind);
                components.retain(|component| component.name != name);
            }
            Effect::ContainerMade(container) => {
                objects.containers.retain(|other| other.id != container.id);
                objects.containers.push(container);
            }
            Effect::ContainerIs(_, id, state) => {
                if let Some(container) = objects.container_mut(&id) {
                    container.state = state;
                }
            }
            Effect::ContainerNamed(_, id, name) => {
                if let Some(container) = objects.container_mut(&id) {
                    container.name = name;
                }
            }
            Effect::ContainerRemoved(_, id) => {
                objects.containers.retain(|container| container.id != id);
            }
        }
    }
}

impl Effect {
    pub(super) fn about(&self) -> (EngineKind, ObjectKind) {
        match self {
            Effect::Pulled(image) => (image.engine, ObjectKind::Images),
            Effect::ImageRemoved(engine, _) => (*engine, ObjectKind::Images),
            Effect::ApiNetworkIsShared(engine) => (*engine, ObjectKind::Networks),
            Effect::ComponentMade(kind, component) => (component.engine, (*kind).into()),
            Effect::ComponentRemoved(kind, engine, _) => (*engine, (*kind).into()),
            Effect::ContainerMade(container) => (container.engine, ObjectKind::Containers),
            Effect::ContainerIs(engine, ..)
            | Effect::ContainerNamed(engine, ..)
            | Effect::ContainerRemoved(engine, _) => (*engine, ObjectKind::Containers),
        }
    }
}
