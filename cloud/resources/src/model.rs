//! All resources together, as one version of the API shows them.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::change::{Change, apply};
use crate::declared;
use crate::resource::{Navigation, Resource};

/// The resources of one version of the API.
#[derive(Debug)]
pub struct Model {
    resources: Vec<Resource>,
    /// By name and by synonym.
    by_name: HashMap<&'static str, usize>,
    faults: Vec<String>,
}

impl Model {
    /// Indexes resources by their names.
    fn from_resources(resources: Vec<Resource>) -> Self {
        let mut by_name = HashMap::new();
        for (at, resource) in resources.iter().enumerate() {
            by_name.insert(resource.name, at);
            for synonym in &resource.synonyms {
                by_name.insert(synonym, at);
            }
        }
        Model {
            resources,
            by_name,
            faults: Vec::new(),
        }
    }

    /// Returns the model of the previous version.
    pub(crate) fn changed(&self, changes: &[(&'static str, Change)]) -> Model {
        let mut resources = self.resources.clone();
        let applied = changes
            .iter()
            .map(|(of, change)| apply(&mut resources, of, change));
        let faults: Vec<String> = applied.filter_map(Result::err).collect();
        Model {
            faults,
            ..Model::from_resources(resources)
        }
    }

    /// Returns the declared changes that do not fit the model; empty for a model in use.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Returns the resource with this name or synonym.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<&Resource> {
        self.by_name
            .get(name)
            .and_then(|at| self.resources.get(*at))
    }

    /// Returns where `name` leads from a resource: it is the name of a navigation, or a synonym of the resource that
    /// the navigation is named after.
    #[must_use]
    pub fn navigation<'a>(&'a self, from: &'a Resource, name: &str) -> Option<&'a Navigation> {
        from.find_navigation(name).or_else(|| {
            let canonical = self.resource(name)?.name;
            from.find_navigation(canonical)
        })
    }

    /// Returns every resource, in the order of declaration: a resource comes before those that link to it, if possible.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }
}

static V7: LazyLock<Model> = LazyLock::new(|| Model::from_resources(declared::all()));

/// Returns the current version.
#[must_use]
pub fn v7() -> &'static Model {
    &V7
}
