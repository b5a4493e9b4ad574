//! The differences between an older version of the API and the next version.
//!
//! A version is the model of the next one with a list of changes applied ([`crate::compat`]). Rows stay unchanged: a
//! renamed field refers to the same column, a renamed resource to the same table.

use crate::field::{Column, Field, Input, Type};
use crate::resource::{Navigation, Resource, Step};

/// One difference of a resource; it also applies to resources that are selections of its rows.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// The first field has the second name.
    Rename(&'static str, &'static str),
    /// A field does not exist.
    Hide(&'static str),
    /// A field is added.
    Add(Field),
    /// A field has values of another type. If it is no longer a link, it leads nowhere.
    Retype(&'static str, Type),
    /// A field is computed by another expression.
    Recompute(&'static str, &'static str),
    /// A field is optional, since this input supplies it.
    MadeBy(&'static str, Input),
    /// The resource does not exist, and no navigation leads to it.
    HideResource,
    /// The resource has another name in addition to its own.
    Also(&'static str),
    /// A further resource selects those of its rows for which a filter holds.
    Only {
        name: &'static str,
        filter: &'static str,
        doc: &'static str,
    },
    /// Rows of another resource link to this one, as in [`Resource::many`].
    Many(&'static str, &'static str, &'static str),
}

/// Applies a change to a resource.
///
/// # Errors
/// The name of a resource or field that does not exist.
pub(crate) fn apply(
    resources: &mut Vec<Resource>,
    of: &'static str,
    change: &Change,
) -> Result<(), String> {
    match *change {
        Change::HideResource => return hide_resource(resources, of),
        Change::Only { name, filter, doc } => {
            let selection = Resource {
                name,
                synonyms: Vec::new(),
                doc,
                only: Some(filter),
                ..named(resources, of)?.clone()
            };
            resources.push(selection);
            return Ok(());
        }
        // A name denotes one resource, so the selections of its rows do not get it.
        Change::Also(name) => {
            named(resources, of)?.synonyms.push(name);
            return Ok(());
        }
        Change::Rename(field, to) => lead_by(resources, of, field, to),
        _ => {}
    }
    let mut changed = false;
    for resource in resources.iter_mut().filter(|one| is(one, of)) {
        change_one(resource, change)?;
        changed = true;
    }
    if changed {
        Ok(())
    } else {
        Err(format!("there is no `{of}`"))
    }
}

fn change_one(resource: &mut Resource, change: &Change) -> Result<(), String> {
    match *change {
        Change::Rename(field, to) => {
            find(resource, field)?.name = to;
            let sets = resource.unique.iter_mut().chain(&mut resource.indexes);
            for name in sets.flatten().filter(|name| **name == field) {
                *name = to;
            }
            for one in &mut resource.navigations {
                if one.name == field && one.step == Step::One(to) {
                    one.name = to;
                }
            }
        }
        Change::Hide(field) => {
            find(resource, field)?;
            resource.fields.retain(|one| one.name != field);
            resource
                .navigations
                .retain(|one| one.step != Step::One(field));
        }
        Change::Add(ref field) => resource.add(field.clone()),
        Change::Retype(field, kind) => {
            find(resource, field)?.kind = kind;
            if !matches!(kind, Type::Link { .. }) {
                resource
                    .navigations
                    .retain(|one| one.step != Step::One(field));
            }
        }
        Change::Recompute(field, by) => {
            find(resource, field)?.column = Column::Computed(by);
        }
        Change::MadeBy(field, input) => {
            let field = find(resource, field)?;
            field.input = Some(input);
            field.required = false;
        }
        Change::Many(name, to, by) => resource.navigations.push(Navigation {
            name,
            to,
            step: Step::Many(by),
        }),
        Change::HideResource | Change::Also(_) | Change::Only { .. } => {}
    }
    Ok(())
}

fn is(resource: &Resource, of: &str) -> bool {
    resource.name == of || resource.table == of
}

fn named<'a>(resources: &'a mut [Resource], name: &str) -> Result<&'a mut Resource, String> {
    let resource = resources.iter_mut().find(|one| one.name == name);
    resource.ok_or_else(|| format!("there is no `{name}`"))
}

fn find<'a>(resource: &'a mut Resource, field: &str) -> Result<&'a mut Field, String> {
    let name = resource.name;
    let named = resource.fields.iter_mut().find(|one| one.name == field);
    named.ok_or_else(|| format!("`{name}` has no `{field}`"))
}

/// Renames a field in all navigation steps that use it.
fn lead_by(resources: &mut [Resource], of: &'static str, field: &'static str, name: &'static str) {
    let changed = resources.iter().filter(|one| is(one, of));
    let changed: Vec<&str> = changed.map(|one| one.name).collect();
    let is_of = |resource: &str| changed.contains(&resource);
    for resource in resources {
        let here = is_of(resource.name);
        for one in &mut resource.navigations {
            let there = is_of(one.to);
            match &mut one.step {
                Step::One(by) if here && *by == field => *by = name,
                Step::Many(by) if there && *by == field => *by = name,
                Step::Through { between, near, far } if is_of(between) => {
                    for by in [near, far] {
                        if *by == field {
                            *by = name;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn hide_resource(resources: &mut Vec<Resource>, name: &'static str) -> Result<(), String> {
    let before = resources.len();
    resources.retain(|one| one.name != name);
    if resources.len() == before {
        return Err(format!("there is no `{name}`"));
    }
    for resource in resources {
        resource.navigations.retain(|one| one.to != name);
    }
    Ok(())
}
