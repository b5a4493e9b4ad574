//! The services, containers and images in the view, including those that were last seen on an engine that is silent now.

use std::collections::BTreeSet;

use model::{
    AppId, AppUuid, Container, ContainerId, CurrentService, DesiredApp, Image, ServiceKey,
};
use plan::ComponentKind;
use strum::VariantArray;

use super::View;
use crate::definitions::{component_subject, service_subject};

impl View {
    fn containers(&self) -> impl Iterator<Item = &Container> {
        let views = self.engines.values();
        views.flat_map(|view| &view.objects.containers)
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = &Image> {
        let views = self.engines.values();
        views.flat_map(|view| &view.objects.images)
    }

    /// Returns all containers of services, whether or not they are known to exist now.
    pub(crate) fn services(&self) -> impl Iterator<Item = CurrentService> {
        // A container that does not name its service is not ours to touch.
        self.containers()
            .filter_map(|c| CurrentService::from_container(c, &self.branding).ok())
    }

    pub(crate) fn services_of(&self, app: &AppUuid) -> Vec<CurrentService> {
        let services = self.services();
        services.filter(|service| service.key.app == *app).collect()
    }

    /// Returns the app of a container, if that is one of a service.
    pub(crate) fn app_of(&self, container: &ContainerId) -> Option<AppId> {
        let mut services = self.services();
        let service = services.find(|service| service.container == *container)?;
        Some(service.app_id)
    }

    /// Returns the apps that have containers; `None` until the engines have answered.
    pub(crate) fn apps(&self) -> Option<BTreeSet<AppId>> {
        let apps = self.services().map(|service| service.app_id);
        self.is_known().then(|| apps.collect())
    }

    pub(crate) fn container(&self, id: &ContainerId) -> Option<&Container> {
        self.containers().find(|container| container.id == *id)
    }

    /// Returns whether every image of the app is on an engine.
    pub(crate) fn has_images_of(&self, app: &DesiredApp) -> bool {
        let mut services = app.services.values();
        services.all(|service| {
            let mut images = self.images();
            images.any(|image| plan::names(image, &service.config.image))
        })
    }

    /// Returns the subjects and digests of the definitions from which existing objects were created; `None` if an
    /// engine does not answer, since it may have others.
    pub(crate) fn definitions(&self) -> Option<BTreeSet<(String, String)>> {
        let current = self.current();
        if !current.all_answer() {
            return None;
        }
        let services = current.services.iter();
        let mut definitions: BTreeSet<(String, String)> = services
            .filter_map(|service| Some((service_subject(&service.key), service.digest.clone()?)))
            .collect();
        for &kind in ComponentKind::VARIANTS {
            let components = current.components(kind).iter();
            definitions.extend(components.filter_map(|component| {
                let subject = component_subject(kind, &component.name);
                Some((subject, component.digest.clone()?))
            }));
        }
        Some(definitions)
    }
}
