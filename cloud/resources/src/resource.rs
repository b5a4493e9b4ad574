//! A resource: rows of one kind.

use crate::access::{Action, Grant, Methods, Permit, Role, Rows};
use crate::field::{Default, Field, Type, Writer, int, time};

/// Rows of one kind.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Its short name, also the name of its table.
    pub name: &'static str,
    /// The resource of version 7 whose rows these are, also the name of their table or view. It equals its own name,
    /// except for some resources of older versions.
    pub table: &'static str,
    /// A filter of the query language that selects some of those rows; it may use the same names as rules
    /// ([`Rows::Where`]).
    pub only: Option<&'static str>,
    /// Other names for it, accepted everywhere (docs/spec/cloud.md#model-synonyms).
    pub synonyms: Vec<&'static str>,
    /// Its meaning, for the documentation.
    pub doc: &'static str,
    /// Where its rows come from.
    pub source: Source,
    /// `id`, `created_at` and `modified_at` first, if it has them.
    pub fields: Vec<Field>,
    /// Sets of fields whose combined values are unique. Each can address a row, like `id`.
    pub unique: Vec<Vec<&'static str>>,
    /// Sets of fields by which rows are often searched, in addition to links and unique fields.
    pub indexes: Vec<Vec<&'static str>>,
    /// The paths from a row to other rows, its own links among them.
    pub navigations: Vec<Navigation>,
    /// The methods that roles may use on its rows.
    pub grants: Vec<Grant>,
    /// The other actions that roles may perform on its rows.
    pub permits: Vec<Permit>,
}

/// Where the rows of a resource come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A table of its name.
    Table,
    /// This statement, the same for all databases. The rows are read-only.
    View(&'static str),
}

/// A path from a row of one resource to rows of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Navigation {
    /// Its name in requests.
    pub name: &'static str,
    /// The other resource.
    pub to: &'static str,
    /// The fields that it follows.
    pub step: Step,
}

/// The fields that lead from a row to rows of another resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This field of the row has the number of the other row: at most one.
    One(&'static str),
    /// This field of the other rows has the number of this row: any number of them.
    Many(&'static str),
    /// Rows of a resource between them: `near` leads to this row, `far` to the other rows.
    Through {
        /// The resource between them.
        between: &'static str,
        /// Its link to this row.
        near: &'static str,
        /// Its link to the others.
        far: &'static str,
    },
}

impl Resource {
    /// Creates a resource with `id`, `created_at` and `modified_at`.
    pub(crate) fn new(name: &'static str, doc: &'static str) -> Self {
        let id = int("id")
            .never_null()
            .by(Writer::Platform)
            .doc("the number of the row");
        let created = time("created_at")
            .default(Default::Now)
            .by(Writer::Platform)
            .doc("when the row was created");
        let modified = time("modified_at")
            .default(Default::Now)
            .by(Writer::Platform)
            .doc("when the row was last changed");
        Resource {
            name,
            table: name,
            only: None,
            synonyms: Vec::new(),
            doc,
            source: Source::Table,
            fields: vec![id, created, modified],
            unique: Vec::new(),
            indexes: Vec::new(),
            navigations: Vec::new(),
            grants: Vec::new(),
            permits: Vec::new(),
        }
    }

    /// Adds another name.
    pub(crate) fn also(mut self, name: &'static str) -> Self {
        self.synonyms.push(name);
        self
    }

    /// Uses the rows of a statement; only the declared fields exist.
    pub(crate) fn view(mut self, statement: &'static str) -> Self {
        self.source = Source::View(statement);
        self.fields.clear();
        self
    }

    /// Adds a field. A link is also a navigation of the same name.
    pub(crate) fn field(mut self, field: Field) -> Self {
        self.add(field);
        self
    }

    /// Adds several fields.
    pub(crate) fn fields<const N: usize>(self, fields: [Field; N]) -> Self {
        fields.into_iter().fold(self, Resource::field)
    }

    /// As [`Resource::field`].
    pub(crate) fn add(&mut self, field: Field) {
        if let Type::Link { to, .. } = field.kind {
            self.navigations.push(Navigation {
                name: field.name,
                to,
                step: Step::One(field.name),
            });
        }
        self.fields.push(field);
    }

    /// Adds another name for following one of its links (`service` for `installs__service`).
    pub(crate) fn link_also(
        mut self,
        name: &'static str,
        to: &'static str,
        field: &'static str,
    ) -> Self {
        self.navigations.push(Navigation {
            name,
            to,
            step: Step::One(field),
        });
        self
    }

    /// Adds a navigation to rows of another resource that link to this one by `field`.
    pub(crate) fn many(
        mut self,
        name: &'static str,
        to: &'static str,
        field: &'static str,
    ) -> Self {
        self.navigations.push(Navigation {
            name,
            to,
            step: Step::Many(field),
        });
        self
    }

    /// Adds a navigation to rows of another resource that link to this one by `field`, named after that resource.
    pub(crate) fn linked_by(self, to: &'static str, field: &'static str) -> Self {
        self.many(to, to, field)
    }

    /// Adds a navigation to rows of another resource, through rows of a resource between them.
    pub(crate) fn through(
        mut self,
        name: &'static str,
        to: &'static str,
        between: &'static str,
        near: &'static str,
        far: &'static str,
    ) -> Self {
        let step = Step::Through { between, near, far };
        self.navigations.push(Navigation { name, to, step });
        self
    }

    /// Makes the combined values of these fields unique.
    pub(crate) fn unique<const N: usize>(mut self, fields: [&'static str; N]) -> Self {
        self.unique.push(fields.to_vec());
        self
    }

    /// Indexes these fields for searches.
    pub(crate) fn index<const N: usize>(mut self, fields: [&'static str; N]) -> Self {
        self.indexes.push(fields.to_vec());
        self
    }

    /// Allows a role to use methods on these rows.
    pub(crate) fn grant(mut self, role: Role, methods: Methods, rows: Rows) -> Self {
        self.grants.push(Grant {
            role,
            methods,
            rows,
        });
        self
    }

    /// Allows everybody.
    pub(crate) fn guests(self, methods: Methods, rows: Rows) -> Self {
        self.grant(Role::Guest, methods, rows)
    }

    /// Allows devices, with their keys.
    pub(crate) fn devices(self, methods: Methods, rows: Rows) -> Self {
        self.grant(Role::DeviceKey, methods, rows)
    }

    /// Allows people, signed in or with a named key.
    pub(crate) fn people(self, methods: Methods, rows: Rows) -> Self {
        self.grant(Role::User, methods, rows)
            .grant(Role::UserKey, methods, rows)
    }

    /// Allows a role to perform an action on these rows.
    pub(crate) fn action(mut self, role: Role, action: Action, rows: Rows) -> Self {
        self.permits.push(Permit { role, action, rows });
        self
    }

    /// Allows people, signed in or with a named key, to perform an action.
    pub(crate) fn people_action(self, action: Action, rows: Rows) -> Self {
        self.action(Role::User, action, rows)
            .action(Role::UserKey, action, rows)
    }

    /// Returns the field of this name.
    #[must_use]
    pub fn find_field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the navigation of this name.
    #[must_use]
    pub fn find_navigation(&self, name: &str) -> Option<&Navigation> {
        self.navigations.iter().find(|one| one.name == name)
    }
}
