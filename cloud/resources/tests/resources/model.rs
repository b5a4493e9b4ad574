//! The declarations fit together.

use resources::{Column, Model, Navigation, Resource, Source, Step, Type, Version, v7};

/// Versions 1 to 4 have the model of version 5.
const MODELS: [Version; 3] = [Version::V5, Version::V6, Version::V7];

#[test]
fn every_link_and_navigation_leads_to_a_resource_and_by_fields_that_exist() {
    for version in MODELS {
        let model = version.model();
        assert_eq!(model.faults(), &[] as &[String]);
        for resource in model.resources() {
            for navigation in &resource.navigations {
                leads(model, resource, navigation);
            }
        }
    }
}

fn leads(model: &Model, resource: &Resource, navigation: &Navigation) {
    let at = format!("`{}` of `{}`", navigation.name, resource.name);
    let to = model
        .resource(navigation.to)
        .unwrap_or_else(|| panic!("{at} leads to no resource"));
    let leads = |from: &str, field: &str, to: &Resource| {
        let from = model.resource(from).expect(&at);
        let field = from
            .find_field(field)
            .unwrap_or_else(|| panic!("{at}: no field `{field}`"));
        let leads = match field.kind {
            Type::Link { to: target, .. } => {
                let target = model.resource(target).map(|it| it.table);
                target == Some(to.table)
            }
            // Actors, before version 7.
            Type::Integer => to.name == "actor" || field.name == "actor",
            _ => false,
        };
        assert!(leads, "{at}: `{}` is no link to `{}`", field.name, to.name);
    };
    match navigation.step {
        Step::One(field) => leads(resource.name, field, to),
        Step::Many(field) => leads(to.name, field, resource),
        Step::Through { between, near, far } => {
            leads(between, near, resource);
            leads(between, far, to);
        }
    }
}

#[test]
fn names_are_of_one_thing_only_and_unique_sets_and_indexes_are_of_stored_fields() {
    MODELS.into_iter().for_each(names_and_sets);
}

fn names_and_sets(version: Version) {
    let mut seen = std::collections::BTreeSet::new();
    for resource in version.model().resources() {
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
            resource.find_field("id").is_some(),
            "{} has no id",
            resource.name
        );
    }
}

/// The model (docs/spec/cloud.md#model): the fields that the API shows, and the keys that address a row besides its
/// number.
const PROMISED: &[(&str, &[&str])] = &[
    ("actor", &[]),
    ("api_key", &[]),
    ("application", &["uuid", "slug", "actor"]),
    (
        "application__can_use__application_as_host",
        &["application,can_use__application_as_host"],
    ),
    ("application_config_variable", &["application,name"]),
    ("application_environment_variable", &["application,name"]),
    (
        "application_invite",
        &["invitee,is_invited_to__application"],
    ),
    ("application_membership_role", &["name"]),
    ("application_tag", &["application,tag_key"]),
    ("application_type", &["slug"]),
    ("audit_event", &[]),
    ("build_environment_variable", &["application,name"]),
    ("cpu_architecture", &["slug"]),
    ("device", &["uuid", "actor"]),
    ("device_config_variable", &["device,name"]),
    ("device_environment_variable", &["device,name"]),
    ("device_family", &["slug"]),
    ("device_history", &[]),
    ("device_manufacturer", &["slug"]),
    ("device_plugin_field", &["device,plugin,name"]),
    (
        "device_service_environment_variable",
        &["service_install,name"],
    ),
    ("device_tag", &["device,tag_key"]),
    ("device_type", &["slug"]),
    (
        "device_type_alias",
        &[
            "is_referenced_by__alias",
            "device_type,is_referenced_by__alias",
        ],
    ),
    ("image", &["is_stored_at__image_location"]),
    ("image_environment_variable", &["release_image,name"]),
    ("image_install", &["device,installs__image"]),
    ("image_label", &["release_image,label_name"]),
    ("invitee", &["email"]),
    ("organization", &["handle"]),
    (
        "organization_invite",
        &["invitee,is_invited_to__organization"],
    ),
    (
        "organization_membership",
        &["user,is_member_of__organization"],
    ),
    ("organization_membership_role", &["name"]),
    ("public_device", &[]),
    ("release", &[]),
    ("release_asset", &["release,asset_key"]),
    ("release_image", &["image,is_part_of__release"]),
    ("release_tag", &["release,tag_key"]),
    ("service", &["application,service_name"]),
    ("service_environment_variable", &["service,name"]),
    ("service_install", &["device,installs__service"]),
    ("service_instance", &[]),
    ("service_label", &["service,label_name"]),
    ("team", &["belongs_to__organization,name"]),
    (
        "team_application_access",
        &["team,grants_access_to__application"],
    ),
    ("team_membership", &["user,is_member_of__team"]),
    ("user", &["username", "email", "actor"]),
    ("user__has__public_key", &[]),
    ("user__has_direct_access_to__application", &[]),
    (
        "user_application_membership",
        &["user,is_member_of__application"],
    ),
    ("user_session", &[]),
];

#[test]
fn each_resource_of_the_description_is_there_with_its_natural_keys_and_no_other() {
    let mut names: Vec<&str> = v7().resources().iter().map(|it| it.name).collect();
    names.sort_unstable();
    let promised: Vec<&str> = PROMISED.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, promised);
    for (name, keys) in PROMISED {
        let resource = v7().resource(name).expect(name);
        for key in *keys {
            assert!(
                resource.unique.iter().any(|set| set.join(",") == **key),
                "`{name}` cannot be addressed by ({key})"
            );
        }
    }
    assert_eq!(v7().resource("api_key").expect("it").unique, [["key_hash"]]);
}

/// The names of docs/spec/cloud.md#model-synonyms.
const SYNONYMS: &[(&str, &str)] = &[
    ("application__has__service_name", "service"),
    ("application__has__tag_key", "application_tag"),
    ("device__has__tag_key", "device_tag"),
    ("release__has__tag_key", "release_tag"),
    (
        "application__has__env_var_name",
        "application_environment_variable",
    ),
    ("device__has__env_var_name", "device_environment_variable"),
    (
        "application__has__config_var_name",
        "application_config_variable",
    ),
    ("device__has__config_var_name", "device_config_variable"),
    ("service__has__name", "service_environment_variable"),
    ("service__has__label_name", "service_label"),
    ("device__installs__service", "service_install"),
    (
        "device__installs__application__has__service_name",
        "service_install",
    ),
    ("device__installs__image", "image_install"),
    (
        "service_install__has__name",
        "device_service_environment_variable",
    ),
    ("image__is_part_of__release", "release_image"),
    ("release_image__has__label_name", "image_label"),
    ("release_image__has__name", "image_environment_variable"),
    ("release__has__asset_key", "release_asset"),
    (
        "user__is_member_of__organization",
        "organization_membership",
    ),
    ("user_public_key", "user__has__public_key"),
    ("device_type__is_referenced_by__alias", "device_type_alias"),
];

#[test]
fn synonyms_mean_their_resource_in_a_path_and_as_a_link_that_is_named_after_it() {
    for (synonym, name) in SYNONYMS {
        assert_eq!(v7().resource(synonym).expect(synonym).name, *name);
        for from in v7().resources() {
            if let Some(direct) = from.find_navigation(name) {
                assert_eq!(v7().navigation(from, synonym), Some(direct));
            }
        }
    }
}

#[test]
fn links_that_are_to_be_expanded_lead_where_the_description_says() {
    for (from, name, to) in [
        ("application", "owns__device", "device"),
        ("application", "is_directly_accessible_by__user", "user"),
        (
            "cpu_architecture",
            "is_supported_by__device_type",
            "device_type",
        ),
        (
            "device_type",
            "supports__cpu_architecture",
            "cpu_architecture",
        ),
        (
            "device_type",
            "is_referenced_by__alias",
            "device_type_alias",
        ),
        (
            "device_manufacturer",
            "manufactures__device_family",
            "device_family",
        ),
        ("device", "installs__image", "image_install"),
        ("device", "installs__service", "service_install"),
        ("device", "should_be_running__release", "release"),
        ("release", "contains__image", "release_image"),
        ("release", "image__is_part_of__release", "release_image"),
        ("release", "should_be_running_on__device", "device"),
        ("release", "provides__image_install", "image_install"),
        ("release_image", "contains__image", "image"),
        ("release_image", "release", "release"),
        ("image", "is_part_of__release", "release_image"),
        ("service", "is_built_by__image", "image"),
        ("service_install", "service", "service"),
        ("image_install", "image", "image"),
        ("service_instance", "manages__device", "device"),
        ("organization", "includes__user", "organization_membership"),
        ("actor", "api_key", "api_key"),
    ] {
        let resource = v7().resource(from).expect(from);
        let navigation = v7().navigation(resource, name);
        assert_eq!(navigation.map(|it| it.to), Some(to), "{from}.{name}");
    }
}

#[test]
fn each_stored_resource_has_its_number_and_its_times_first() {
    for resource in v7().resources() {
        if resource.source == Source::Table {
            let first: Vec<&str> = resource.fields.iter().map(|it| it.name).take(3).collect();
            assert_eq!(
                first,
                ["id", "created_at", "modified_at"],
                "{}",
                resource.name
            );
        }
    }
}
