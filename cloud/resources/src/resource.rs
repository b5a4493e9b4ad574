//! A resource: rows of one kind.

use crate::access::{Action, Grant, Methods, Permit, Role, Rows};
use crate::field::{Default, Field, Type, Writer, int, time};

/// Rows of one kind.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Its short name, which is that of its table.
    pub name: &'static str,
    /// The resource of version 7 whose rows these are, which is the name of their table or view. Its own name
    /// but for some in older versions.
    pub table: &'static str,
    /// Of those rows, the ones that this filter of the query language holds for; it may use what rules may
    /// ([`Rows::Where`]).
    pub only: Option<&'static str>,
    /// Other names that mean it, everywhere (docs/spec/cloud.md#model-synonyms).
    pub synonyms: Vec<&'static str>,
    /// What it is, for the documentation.
    pub doc: &'static str,
    /// Where its rows are.
    pub source: Source,
    /// `id`, `created_at` and `modified_at` first, where it has them.
    pub fields: Vec<Field>,
    /// Sets of fields whose values no two rows share. Each can address a row, beside `id`.
    pub unique: Vec<Vec<&'static str>>,
    /// Sets of fields by which rows are looked for often, beside links and what is unique.
    pub indexes: Vec<Vec<&'static str>>,
    /// Where one gets from a row, its own links among them.
    pub navigations: Vec<Navigation>,
    /// Who may do what with which rows.
    pub grants: Vec<Grant>,
    /// Who may do what else with which rows.
    pub permits: Vec<Permit>,
}

/// Where the rows of a resource are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In a table of its name.
    Table,
    /// Wherever this statement, the same for all databases, finds them. Nobody writes them.
    View(&'static str),
}

/// How one gets from a row of one resource to rows of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Navigation {
    /// As a request calls it.
    pub name: &'static str,
    /// The other resource.
    pub to: &'static str,
    /// By which fields.
    pub step: Step,
}

/// By which fields one gets from a row to rows of another resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This field of the row has the number of the other: one at most.
    One(&'static str),
    /// This field of the others has the number of the row: any number of them.
    Many(&'static str),
    /// By the rows of a resource between them: `near` leads to the row, `far` to the others.
    Through {
        /// The resource between.
        between: &'static str,
        /// Its link to this row.
        near: &'static str,
        /// Its link to the others.
        far: &'static str,
    },
}

impl Resource {
    /// A resource with `id`, `created_at` and `modified_at`.
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

    /// Another name.
    pub(crate) fn also(mut self, name: &'static str) -> Self {
        self.synonyms.push(name);
        self
    }

    /// The rows are those of a statement; it has no fields but those that are declared.
    pub(crate) fn view(mut self, statement: &'static str) -> Self {
        self.source = Source::View(statement);
        self.fields.clear();
        self
    }

    /// A field. A link is a navigation as well, of the same name.
    pub(crate) fn field(mut self, field: Field) -> Self {
        self.add(field);
        self
    }

    /// Several of them.
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

    /// Another name of one of its links, to follow it by (`service` for `installs__service`).
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

    /// Rows of another resource that lead here by their link `field`.
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

    /// Rows of another resource that lead here by their link `field`, under the name of that resource.
    pub(crate) fn linked_by(self, to: &'static str, field: &'static str) -> Self {
        self.many(to, to, field)
    }

    /// Rows of another resource, by those of a resource between.
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

    /// No two rows share the values of these.
    pub(crate) fn unique<const N: usize>(mut self, fields: [&'static str; N]) -> Self {
        self.unique.push(fields.to_vec());
        self
    }

    /// Rows are looked for by these.
    pub(crate) fn index<const N: usize>(mut self, fields: [&'static str; N]) -> Self {
        self.indexes.push(fields.to_vec());
        self
    }

    /// A role may do this with these rows.
    pub(crate) fn grant(mut self, role: Role, methods: Methods, rows: Rows) -> Self {
        self.grants.push(Grant {
            role,
            methods,
            rows,
        });
        self
    }

    /// Anybody may.
    pub(crate) fn guests(self, methods: Methods, rows: Rows) -> Self {
        self.grant(Role::Guest, methods, rows)
    }

    /// A device may, by its key.
    pub(crate) fn devices(self, methods: Methods, rows: Rows) -> Self {
        self.grant(Role::DeviceKey, methods, rows)
    }

    /// A person may, signed in or by a named key.
    pub(crate) fn people(self, methods: Methods, rows: Rows) -> Self {
        self.grant(Role::User, methods, rows)
            .grant(Role::UserKey, methods, rows)
    }

    /// A role may do this, which is none of the methods, with these rows.
    pub(crate) fn action(mut self, role: Role, action: Action, rows: Rows) -> Self {
        self.permits.push(Permit { role, action, rows });
        self
    }

    /// A person may, signed in or by a named key.
    pub(crate) fn people_action(self, action: Action, rows: Rows) -> Self {
        self.action(Role::User, action, rows)
            .action(Role::UserKey, action, rows)
    }

    /// The field of this name.
    #[must_use]
    pub fn find_field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The navigation of this name.
    #[must_use]
    pub fn find_navigation(&self, name: &str) -> Option<&Navigation> {
        self.navigations.iter().find(|one| one.name == name)
    }
}
