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
    /// Resources by their names.
    fn of(resources: Vec<Resource>) -> Self {
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

    /// The model of the version before.
    pub(crate) fn changed(&self, changes: &[(&'static str, Change)]) -> Model {
        let mut resources = self.resources.clone();
        let applied = changes
            .iter()
            .map(|(of, change)| apply(&mut resources, of, change));
        let faults: Vec<String> = applied.filter_map(Result::err).collect();
        Model {
            faults,
            ..Model::of(resources)
        }
    }

    /// What of the declared changes fits nothing; of a model that is in use, nothing.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// The resource of this name or synonym.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<&Resource> {
        self.by_name
            .get(name)
            .and_then(|at| self.resources.get(*at))
    }

    /// Where `name` leads from a resource: by the name of the navigation, or by a synonym of the resource
    /// that it is named after.
    #[must_use]
    pub fn navigation<'a>(&'a self, from: &'a Resource, name: &str) -> Option<&'a Navigation> {
        from.find_navigation(name).or_else(|| {
            let canonical = self.resource(name)?.name;
            from.find_navigation(canonical)
        })
    }

    /// Every resource, in the order of their declaration: one that another links to comes before it where
    /// that can be.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }
}

static V7: LazyLock<Model> = LazyLock::new(|| Model::of(declared::all()));

/// The current version.
#[must_use]
pub fn v7() -> &'static Model {
    &V7
}
