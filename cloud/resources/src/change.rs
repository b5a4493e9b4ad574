//! What an older version of the API has otherwise than the one after it.
//!
//! A version is the model of the next one with a list of changes applied ([`crate::older`]). Rows stay where
//! they are: a field of another name leads to the same column, a resource of another name to the same table.

use crate::field::{Column, Field, Input, Type};
use crate::resource::{Navigation, Resource, Step};

/// One difference. `of` is a resource; what holds for it holds for those that are some of its rows as well.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A field is called otherwise.
    Rename {
        of: &'static str,
        field: &'static str,
        to: &'static str,
    },
    /// A field is not there.
    Hide {
        of: &'static str,
        field: &'static str,
    },
    /// A field is there.
    Add { of: &'static str, field: Field },
    /// A field has values of another type. One that is no link any more leads nowhere.
    Retype {
        of: &'static str,
        field: &'static str,
        kind: Type,
    },
    /// A field is worked out by another expression.
    Recompute {
        of: &'static str,
        field: &'static str,
        by: &'static str,
    },
    /// A field that need not be given, since this makes it.
    MadeBy {
        of: &'static str,
        field: &'static str,
        input: Input,
    },
    /// A resource is not there, and nothing leads to it.
    HideResource(&'static str),
    /// A resource has another name beside its own.
    Also {
        of: &'static str,
        name: &'static str,
    },
    /// A resource of those rows of another that a filter holds for.
    Only {
        name: &'static str,
        of: &'static str,
        filter: &'static str,
        doc: &'static str,
    },
    /// Rows of another resource that lead here.
    Many {
        of: &'static str,
        name: &'static str,
        to: &'static str,
        by: &'static str,
    },
}

/// Applies a change.
///
/// # Errors
/// What it names and is not there.
pub(crate) fn apply(resources: &mut Vec<Resource>, change: &Change) -> Result<(), String> {
    let of = match *change {
        Change::HideResource(name) => return hide_resource(resources, name),
        Change::Only {
            name,
            of,
            filter,
            doc,
        } => return add_selection(resources, name, of, filter, doc),
        Change::Rename { of, .. }
        | Change::Hide { of, .. }
        | Change::Add { of, .. }
        | Change::Retype { of, .. }
        | Change::Recompute { of, .. }
        | Change::MadeBy { of, .. }
        | Change::Also { of, .. }
        | Change::Many { of, .. } => of,
    };
    if let Change::Also { name, .. } = *change {
        // A name means one resource, so it is none of those that are selections of its rows.
        let named = resources.iter_mut().find(|one| one.name == of);
        let named = named.ok_or_else(|| format!("there is no `{of}`"))?;
        named.synonyms.push(name);
        return Ok(());
    }
    if let Change::Rename { field, to, .. } = *change {
        lead_by(resources, of, field, to);
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
        Change::Rename { field, to, .. } => {
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
        Change::Hide { field, .. } => {
            find(resource, field)?;
            resource.fields.retain(|one| one.name != field);
            resource
                .navigations
                .retain(|one| one.step != Step::One(field));
        }
        Change::Add { ref field, .. } => {
            resource.add(field.clone());
        }
        Change::Retype { field, kind, .. } => {
            find(resource, field)?.kind = kind;
            if !matches!(kind, Type::Link { .. }) {
                resource
                    .navigations
                    .retain(|one| one.step != Step::One(field));
            }
        }
        Change::Recompute { field, by, .. } => {
            find(resource, field)?.column = Column::Computed(by);
        }
        Change::MadeBy { field, input, .. } => {
            let field = find(resource, field)?;
            field.input = Some(input);
            field.required = false;
        }
        Change::Many { name, to, by, .. } => resource.navigations.push(Navigation {
            name,
            to,
            step: Step::Many(by),
        }),
        Change::HideResource(_) | Change::Also { .. } | Change::Only { .. } => {}
    }
    Ok(())
}

fn is(resource: &Resource, of: &str) -> bool {
    resource.name == of || resource.table == of
}

fn find<'a>(resource: &'a mut Resource, field: &str) -> Result<&'a mut Field, String> {
    let name = resource.name;
    let found = resource.fields.iter_mut().find(|one| one.name == field);
    found.ok_or_else(|| format!("`{name}` has no `{field}`"))
}

/// Has every step that goes by a field go by its new name.
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

fn add_selection(
    resources: &mut Vec<Resource>,
    name: &'static str,
    of: &'static str,
    filter: &'static str,
    doc: &'static str,
) -> Result<(), String> {
    let whole = resources.iter().find(|one| one.name == of);
    let whole = whole.ok_or_else(|| format!("there is no `{of}`"))?;
    let selection = Resource {
        name,
        synonyms: Vec::new(),
        doc,
        only: Some(filter),
        ..whole.clone()
    };
    resources.push(selection);
    Ok(())
}
