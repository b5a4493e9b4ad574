//! What is declared fits together.

use resources::{Column, Rows, Source, Step, Type, v7};

#[test]
fn every_link_and_navigation_leads_to_a_resource_and_by_fields_that_exist() {
    for resource in v7().resources() {
        for navigation in &resource.navigations {
            let at = format!("`{}` of `{}`", navigation.name, resource.name);
            let to = v7()
                .resource(navigation.to)
                .unwrap_or_else(|| panic!("{at} leads to no resource"));
            let leads = |from: &str, field: &str, to: &str| {
                let from = v7().resource(from).expect(&at);
                let field = from
                    .find_field(field)
                    .unwrap_or_else(|| panic!("{at}: no field `{field}`"));
                assert!(
                    matches!(field.kind, Type::Link { to: target, .. } if target == to),
                    "{at}: `{}` is no link to `{to}`",
                    field.name
                );
            };
            match navigation.step {
                Step::One(field) => leads(resource.name, field, to.name),
                Step::Many(field) => leads(to.name, field, resource.name),
                Step::Through { between, near, far } => {
                    leads(between, near, resource.name);
                    leads(between, far, to.name);
                }
            }
        }
    }
}

#[test]
fn names_are_of_one_thing_only_and_unique_sets_and_indexes_are_of_stored_fields() {
    let mut seen = std::collections::BTreeSet::new();
    for resource in v7().resources() {
        for name in std::iter::once(&resource.name).chain(&resource.synonyms) {
            assert!(seen.insert(*name), "`{name}` names two resources");
        }
        let mut fields = std::collections::BTreeSet::new();
        for field in &resource.fields {
            assert!(
                fields.insert(field.name),
                "{}.{}",
                resource.name,
                field.name
            );
        }
        let mut navigations = std::collections::BTreeSet::new();
        for one in &resource.navigations {
            assert!(
                navigations.insert(one.name),
                "{}.{}",
                resource.name,
                one.name
            );
            let field = resource.find_field(one.name);
            assert!(
                field.is_none() || one.step == Step::One(one.name),
                "{}.{} is a field and leads elsewhere",
                resource.name,
                one.name
            );
        }
        for set in resource.unique.iter().chain(&resource.indexes) {
            for name in set {
                let field = resource.find_field(name).expect(name);
                assert!(
                    matches!(field.column, Column::Stored(_)),
                    "{}.{name}",
                    resource.name
                );
            }
        }
        assert!(
            matches!(resource.source, Source::View(_)) || resource.find_field("id").is_some(),
            "{} has no id",
            resource.name
        );
    }
}

#[test]
fn every_row_rule_is_a_filter_of_the_query_language_or_follows_a_link() {
    for resource in v7().resources() {
        for grant in &resource.grants {
            match grant.rows {
                Rows::All => {}
                Rows::Where(filter) => {
                    let query = format!("$filter={filter}&@actor=1&@user=1");
                    if let Err(error) = odata::parse(&format!("/{}", resource.name), Some(&query)) {
                        // An alias that a rule does not use is no fault of the rule.
                        assert!(
                            error.message.contains("alias"),
                            "{filter}: {}",
                            error.message
                        );
                    }
                }
                Rows::Through(link) => {
                    let navigation = resource.find_navigation(link).expect(link);
                    assert!(
                        matches!(navigation.step, Step::One(_)),
                        "{}.{link}",
                        resource.name
                    );
                    let to = v7().resource(navigation.to).expect(link);
                    assert!(
                        to.grants.iter().any(|one| one.role == grant.role),
                        "{}: {:?} has nothing at the end of `{link}`",
                        resource.name,
                        grant.role
                    );
                }
            }
        }
    }
}
