//! Who may do what with which rows (docs/spec/cloud.md#rights).

use odata::{Address, Expression, Operand, PropertyPath, Tail};
use resources::{Action, Method, Model, Resource, Role, Rows, Step, Version, v7};
use strum::VariantArray;

#[test]
fn secrets_are_read_by_nobody() {
    let mut secrets = Vec::new();
    for resource in v7().resources() {
        for field in &resource.fields {
            if field.secret {
                secrets.push(format!("{}.{}", resource.name, field.name));
            }
        }
    }
    assert_eq!(
        secrets,
        [
            "user.password",
            "user.jwt_secret",
            "user.is_cloud_administrator",
            "user.is_disabled",
            "api_key.key_hash",
            "api_key.role",
            "release_asset.file",
            "device.api_secret",
        ]
    );
}

#[test]
fn a_rule_that_follows_a_link_finds_rules_of_the_same_role_at_its_end() {
    for resource in v7().resources() {
        let grants = resource
            .grants
            .iter()
            .map(|it| (it.role, it.methods.has(Method::Read), it.rows));
        let permits = resource.permits.iter().map(|it| (it.role, false, it.rows));
        for (role, reads, rows) in grants.chain(permits) {
            let Rows::Through(link) = rows else { continue };
            let navigation = resource.find_navigation(link).expect(link);
            assert!(
                matches!(navigation.step, Step::One(_)),
                "{}.{link}",
                resource.name
            );
            let to = v7().resource(navigation.to).expect(link);
            let method = if reads { Method::Read } else { Method::Update };
            assert!(
                to.grants
                    .iter()
                    .any(|one| one.role == role && one.methods.has(method)),
                "{}: {role:?} may not {method:?} what is at the end of `{link}`",
                resource.name
            );
        }
    }
}

#[test]
fn every_row_rule_names_what_there_is_and_means_the_same_in_every_version() {
    for resource in v7().resources() {
        let grants = resource.grants.iter().map(|it| it.rows);
        let permits = resource.permits.iter().map(|it| it.rows);
        for rows in grants.chain(permits) {
            let Rows::Where(filter) = rows else { continue };
            let meant = meaning(v7(), resource, filter);
            for version in [Version::V5, Version::V6] {
                let model = version.model();
                let same = model.resources().iter();
                for same in same.filter(|one| one.table == resource.table) {
                    assert_eq!(
                        meaning(model, same, filter),
                        meant,
                        "{version:?} {}",
                        same.name
                    );
                }
            }
        }
    }
}

#[test]
fn what_a_resource_of_an_older_version_is_limited_to_is_a_filter_of_that_version() {
    let mut limited = Vec::new();
    for resource in Version::V6.model().resources() {
        if let Some(filter) = resource.only {
            meaning(Version::V6.model(), resource, filter);
            limited.push(resource.name);
        }
    }
    assert_eq!(
        limited,
        ["gateway_download", "supervisor_release", "my_application"]
    );
}

/// Returns the tables and columns that a filter reads, in order. Panics if it is not a filter, or names something that
/// the model does not have.
fn meaning(model: &Model, resource: &Resource, filter: &str) -> Vec<String> {
    let query = format!("$filter={filter}&@actor=1&@user=1");
    let request = odata::parse(&format!("/{}", resource.name), Some(&query))
        .unwrap_or_else(|error| panic!("{filter}: {}", error.message));
    assert!(matches!(request.address, Address::Resource(path) if path.tail == Tail::Records));
    let filter = request.options.filter.expect("a filter");
    let mut read = Vec::new();
    Scope {
        model,
        resource,
        variables: Vec::new(),
    }
    .read(&filter, &mut read);
    read
}

/// The meaning of names at a place in a filter.
#[derive(Clone)]
struct Scope<'a> {
    model: &'a Model,
    resource: &'a Resource,
    variables: Vec<(String, &'a Resource)>,
}

impl<'a> Scope<'a> {
    fn read(&self, expression: &Expression, read: &mut Vec<String>) {
        match &expression.operand {
            Operand::Value(_) => {}
            Operand::Property(path) => {
                let (from, last) = self.walk(path, read);
                read.push(column(from, &last));
            }
            Operand::Lambda(lambda) => {
                let to = self.through(&lambda.path, read);
                let mut inner = self.clone();
                inner.variables.push((lambda.variable.text.clone(), to));
                inner.read(&lambda.body, read);
            }
            Operand::Count(count) => {
                self.through(&count.path, read);
            }
            Operand::Not(inner) | Operand::Negative(inner) => self.read(inner, read),
            Operand::Compare(_, both) | Operand::Arithmetic(_, both) => {
                both.iter().for_each(|one| self.read(one, read));
            }
            Operand::In(value, all) => {
                self.read(value, read);
                all.iter().for_each(|one| self.read(one, read));
            }
            Operand::Call(_, all) | Operand::And(all) | Operand::Or(all) => {
                all.iter().for_each(|one| self.read(one, read));
            }
        }
    }

    /// Returns the resource before the last name of a path, and that name.
    fn walk(&self, path: &PropertyPath, read: &mut Vec<String>) -> (&'a Resource, String) {
        let names = path.segments.iter().map(|it| it.name.text.as_str());
        let mut names: Vec<&str> = names.collect();
        let last = names.pop().expect("a path has a name");
        let of = |first: &&str| self.variables.iter().rev().find(|(name, _)| name == first);
        let (mut at, rest) = match names.first().and_then(of) {
            Some((_, resource)) => (*resource, names.get(1..).unwrap_or_default()),
            None => (self.resource, names.as_slice()),
        };
        for name in rest {
            at = self.step(at, name, read);
        }
        (at, last.to_owned())
    }

    fn through(&self, path: &PropertyPath, read: &mut Vec<String>) -> &'a Resource {
        let (from, last) = self.walk(path, read);
        self.step(from, &last, read)
    }

    fn step(&self, from: &'a Resource, name: &str, read: &mut Vec<String>) -> &'a Resource {
        let navigation = self.model.navigation(from, name);
        let navigation =
            navigation.unwrap_or_else(|| panic!("`{}` has no link `{name}`", from.name));
        let to = self.model.resource(navigation.to).expect("a resource");
        read.push(match navigation.step {
            Step::One(field) => column(from, field),
            Step::Many(field) => column(to, field),
            Step::Through { between, near, far } => {
                let between = self.model.resource(between).expect("a resource");
                format!("{}, {}", column(between, near), column(between, far))
            }
        });
        to
    }
}

fn column(resource: &Resource, name: &str) -> String {
    let field = resource.find_field(name);
    let field = field.unwrap_or_else(|| panic!("`{}` has no field `{name}`", resource.name));
    // Nobody can read the field, but which rows it hides is not secret.
    let hides = (resource.name, name) == ("user", "is_disabled");
    assert!(!field.secret || hides, "a rule reads `{name}`");
    format!("{} {:?}", resource.table, field.column)
}

#[test]
fn the_words_of_keys_and_actions_are_read_back() {
    for action in Action::VARIANTS {
        assert_eq!(action.to_string().parse(), Ok(*action));
    }
    assert_eq!(Role::from_key_word("device-api-key"), Some(Role::DeviceKey));
    assert_eq!(Role::from_key_word("guest"), None);
}
