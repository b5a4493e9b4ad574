//! A cloud with some of everything: two organizations that cannot see each other, a public fleet, and rows of every
//! other resource.

use data::{Database, SystemPurpose};
use resources::{Column, Default, Field, Source, Type, v7};
use sea_query::{Alias, Expr, InsertStatement, Value};

/// When every row was created: 2026-01-02T03:04:05.678Z.
pub(crate) const MADE: i64 = 1_767_323_045_678;

/// A value of the fixture.
pub(crate) enum FixtureValue {
    /// A number, a link or a time.
    N(i64),
    /// A text or JSON.
    T(&'static str),
    /// True or false.
    B(bool),
}

use FixtureValue::{B, N, T};

/// Inserts a row into a table; fields that are not given get the model's default, or a value that their type allows.
pub(crate) async fn insert(
    database: &Database,
    resource: &str,
    id: i64,
    fields: &[(&str, FixtureValue)],
) {
    let model = v7().resource(resource).expect(resource);
    assert_eq!(model.source, Source::Table, "{resource}");
    for (name, _) in fields {
        assert!(model.find_field(name).is_some(), "{resource} has no {name}");
    }
    let mut columns = Vec::new();
    let mut values: Vec<Expr> = Vec::new();
    for field in &model.fields {
        let Column::Stored(column) = field.column else {
            continue;
        };
        let value = match fields.iter().find(|(name, _)| *name == field.name) {
            Some((_, N(number))) => Value::from(*number),
            Some((_, T(text))) => Value::from(*text),
            Some((_, B(flag))) => Value::from(*flag),
            None if field.name == "id" => Value::from(id),
            None if field.nullable => continue,
            None => anything(resource, field, id),
        };
        columns.push(Alias::new(column));
        values.push(value.into());
    }
    let mut insert = InsertStatement::new();
    insert
        .into_table(Alias::new(model.name))
        .columns(columns)
        .values_panic(values);
    if let Err(error) = database
        .execute(&SystemPurpose::Rules.statement(insert))
        .await
    {
        panic!("{resource} {id}: {error}");
    }
}

fn anything(resource: &str, field: &Field, id: i64) -> Value {
    match (field.default, field.kind) {
        (Default::Text(text), _) => text.into(),
        (Default::Integer(number), _) => number.into(),
        (Default::Boolean(flag), _) => flag.into(),
        (Default::Now, _) => MADE.into(),
        (Default::Uuid, _) => format!("{id:0>32}").into(),
        (Default::None, Type::Integer | Type::BigInteger | Type::Link { .. }) => id.into(),
        (Default::None, Type::Boolean) => false.into(),
        (Default::None, Type::Timestamp) => MADE.into(),
        (Default::None, Type::Json { .. } | Type::JsonText { .. }) => "{}".into(),
        (Default::None, Type::Word(words)) => words[0].into(),
        (Default::None, Type::Text { .. }) => format!("{resource}-{}-{id}", field.name).into(),
    }
}

/// Creates users 1 (`ann`, of the organization `acme`) and 2 (`bob`, of `other`); fleets 4 (`acme/pump`), 5
/// (`acme/valve`), 6 (`other/secret`) and 7 (`other/open`, public); devices 7 and 8 of fleet 4, 9 of fleet 6, 10 of
/// fleet 7; actors are numbered 10 + user, 20 + fleet, 30 + device.
pub(crate) async fn cloud(database: &Database) {
    let db = database;
    for actor in [11, 12, 24, 25, 26, 27, 37, 38, 39, 40] {
        insert(db, "actor", actor, &[]).await;
    }
    for (id, name, email) in [
        (1, "ann", "ann@acme.example"),
        (2, "bob", "bob@other.example"),
    ] {
        let values = [
            ("actor", N(10 + id)),
            ("username", T(name)),
            ("email", T(email)),
        ];
        insert(db, "user", id, &values).await;
    }
    insert(
        db,
        "organization",
        1,
        &[("name", T("Acme")), ("handle", T("acme"))],
    )
    .await;
    insert(
        db,
        "organization",
        2,
        &[("name", T("Other")), ("handle", T("other"))],
    )
    .await;
    let roles = v7().resource("organization_membership_role").is_some();
    if roles {
        insert(
            db,
            "organization_membership_role",
            1,
            &[("name", T("administrator"))],
        )
        .await;
    }
    for id in [1, 2] {
        let mut values = vec![("user", N(id)), ("is_member_of__organization", N(id))];
        if roles {
            values.push(("organization_membership_role", N(1)));
        }
        insert(db, "organization_membership", id, &values).await;
    }
    insert(db, "cpu_architecture", 1, &[("slug", T("aarch64"))]).await;
    insert(db, "cpu_architecture", 2, &[("slug", T("amd64"))]).await;
    for (id, slug, name, arch) in [
        (11, "raspberrypi4-64", "Raspberry Pi 4", 1),
        (12, "intel-nuc", "Intel NUC", 2),
    ] {
        let values = [
            ("slug", T(slug)),
            ("name", T(name)),
            ("is_of__cpu_architecture", N(arch)),
        ];
        insert(db, "device_type", id, &values).await;
        let alias = [("device_type", N(id)), ("is_referenced_by__alias", T(slug))];
        insert(db, "device_type_alias", id, &alias).await;
    }
    insert(db, "device_family", 1, &[]).await;
    insert(db, "device_manufacturer", 1, &[]).await;
    insert(
        db,
        "application_type",
        1,
        &[("slug", T("default")), ("name", T("Default"))],
    )
    .await;
    for (id, name, slug, organization, device_type, public) in [
        (4, "pump", "acme/pump", 1, 11, false),
        (5, "valve", "acme/valve", 1, 12, false),
        (6, "secret", "other/secret", 2, 11, false),
        (7, "open", "other/open", 2, 11, true),
    ] {
        let values = [
            ("actor", N(20 + id)),
            ("app_name", T(name)),
            ("slug", T(slug)),
            ("organization", N(organization)),
            ("is_for__device_type", N(device_type)),
            ("application_type", N(1)),
            ("is_public", B(public)),
            ("is_discoverable", B(public)),
        ];
        insert(db, "application", id, &values).await;
    }
    releases(db).await;
    devices(db).await;
    rest(db).await;
}

async fn releases(db: &Database) {
    // In fleet 4 the final 1.2.3 (77), the draft 1.3.0-beta (78) and a failed one (79); in the public fleet 80.
    for (id, fleet, commit, status, patch) in [
        (77, 4, "f7caf4f0000000000000000000000000", "success", 3),
        (78, 4, "aa00000000000000000000000000aa00", "success", 0),
        (79, 4, "bb00000000000000000000000000bb00", "failed", 9),
        (80, 7, "cc00000000000000000000000000cc00", "success", 0),
        (81, 6, "dd00000000000000000000000000dd00", "success", 0),
    ] {
        let mut values = vec![
            ("belongs_to__application", N(fleet)),
            ("commit", T(commit)),
            (
                "composition",
                T(r#"{"services":{"main":{"restart":"always"}}}"#),
            ),
            ("status", T(status)),
            ("semver_major", N(1)),
            ("semver_minor", N(2)),
            ("semver_patch", N(patch)),
            ("start_timestamp", N(MADE + id)),
        ];
        if id == 78 {
            values.push(("semver_prerelease", T("beta.1")));
        } else {
            values.push(("revision", N(i64::from(id == 77) * 4)));
        }
        if id == 77 {
            values.push(("variant", T("prod")));
        }
        insert(db, "release", id, &values).await;
    }
    for (id, fleet) in [(21, 4), (22, 6)] {
        let values = [("application", N(fleet)), ("service_name", T("main"))];
        insert(db, "service", id, &values).await;
        let image = [
            ("is_a_build_of__service", N(id)),
            ("status", T("success")),
            ("image_size", N(9_007_199_254_740_993)),
        ];
        insert(db, "image", 69 + id, &image).await;
        let release = if fleet == 4 { 77 } else { 81 };
        let part = [("image", N(69 + id)), ("is_part_of__release", N(release))];
        insert(db, "release_image", id, &part).await;
        insert(db, "image_label", id, &[("release_image", N(id))]).await;
        insert(
            db,
            "image_environment_variable",
            id,
            &[("release_image", N(id))],
        )
        .await;
        insert(db, "service_label", id, &[("service", N(id))]).await;
        insert(
            db,
            "service_environment_variable",
            id,
            &[("service", N(id))],
        )
        .await;
        insert(db, "release_tag", id, &[("release", N(release))]).await;
        insert(db, "release_asset", id, &[("release", N(release))]).await;
    }
}

async fn devices(db: &Database) {
    for (id, fleet, name) in [
        (7, 4, "calm-river"),
        (8, 4, "it's 100%_cafe\u{e9} & co; (x), y+z"),
        (9, 6, "hidden"),
        (10, 7, "shown"),
    ] {
        let mut values = vec![
            ("actor", N(30 + id)),
            ("device_name", T(name)),
            ("is_of__device_type", N(11)),
            ("belongs_to__application", N(fleet)),
            ("api_secret", T("never-shown")),
        ];
        if id == 7 {
            values.push(("is_online", B(true)));
            values.push(("is_connected_to_vpn", B(true)));
            values.push(("api_heartbeat_state", T("online")));
            values.push(("status", T("Idle")));
            values.push(("os_version", T("OS 2.0")));
            values.push(("is_pinned_on__release", N(78)));
            values.push(("last_connectivity_event", N(MADE)));
        }
        insert(db, "device", id, &values).await;
    }
    for (id, device, key, value) in [
        (1, 7, "env", "prod"),
        (2, 8, "env", "dev"),
        (3, 7, "zone", "it's 100%"),
        (4, 9, "env", "prod"),
    ] {
        let values = [
            ("device", N(device)),
            ("tag_key", T(key)),
            ("value", T(value)),
        ];
        insert(db, "device_tag", id, &values).await;
    }
}

async fn rest(db: &Database) {
    for (id, fleet, device, service, image) in [(1, 4, 7, 21, 90), (2, 6, 9, 22, 91)] {
        insert(db, "application_tag", id, &[("application", N(fleet))]).await;
        insert(
            db,
            "application_config_variable",
            id,
            &[("application", N(fleet))],
        )
        .await;
        insert(
            db,
            "application_environment_variable",
            id,
            &[("application", N(fleet))],
        )
        .await;
        insert(
            db,
            "build_environment_variable",
            id,
            &[("application", N(fleet))],
        )
        .await;
        insert(db, "device_config_variable", id, &[("device", N(device))]).await;
        insert(
            db,
            "device_environment_variable",
            id,
            &[("device", N(device))],
        )
        .await;
        let install = [("device", N(device)), ("installs__service", N(service))];
        insert(db, "service_install", id, &install).await;
        let variable = [
            ("service_install", N(id)),
            ("device", N(device)),
            ("service", N(service)),
        ];
        let resource = v7()
            .resource("device_service_environment_variable")
            .expect("it");
        let known: Vec<_> = variable
            .into_iter()
            .filter(|(name, _)| resource.find_field(name).is_some())
            .collect();
        insert(db, "device_service_environment_variable", id, &known).await;
        let release = if fleet == 4 { 77 } else { 81 };
        let image = [
            ("device", N(device)),
            ("installs__image", N(image)),
            ("is_provided_by__release", N(release)),
            ("status", T("Running")),
        ];
        insert(db, "image_install", id, &image).await;
        insert(
            db,
            "api_key",
            id,
            &[("is_of__actor", N(10 + id)), ("name", T("ci"))],
        )
        .await;
        insert(db, "user__has__public_key", id, &[("user", N(id))]).await;
        insert(db, "device_history", id, &[("tracks__device", N(device))]).await;
    }
    insert(db, "service_instance", 1, &[]).await;
    sharing(db).await;
}

/// Adds for each organization a team with its own user in it, and an invite.
async fn sharing(db: &Database) {
    insert(
        db,
        "application_membership_role",
        1,
        &[("name", T("developer"))],
    )
    .await;
    for (id, fleet) in [(1, 4), (2, 6)] {
        let team = [("belongs_to__organization", N(id))];
        insert(db, "team", id, &team).await;
        let member = [("user", N(id)), ("is_member_of__team", N(id))];
        insert(db, "team_membership", id, &member).await;
        let access = [
            ("team", N(id)),
            ("grants_access_to__application", N(fleet)),
            ("application_membership_role", N(1)),
        ];
        insert(db, "team_application_access", id, &access).await;
        insert(db, "invitee", id, &[]).await;
        let invite = [
            ("invitee", N(id)),
            ("is_invited_to__organization", N(id)),
            ("organization_membership_role", N(1)),
        ];
        insert(db, "organization_invite", id, &invite).await;
        let invite = [
            ("invitee", N(id)),
            ("is_invited_to__application", N(fleet)),
            ("application_membership_role", N(1)),
        ];
        insert(db, "application_invite", id, &invite).await;
        let host = [
            ("application", N(fleet)),
            ("can_use__application_as_host", N(7)),
        ];
        insert(db, "application__can_use__application_as_host", id, &host).await;
    }
}
