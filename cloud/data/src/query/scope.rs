//! Rows in a statement, how one gets from one to others, and which of them the caller may see.

use std::cell::Cell;
use std::collections::BTreeMap;

use odata::{Key, Literal, Name, Value};
use resources::{
    Action, Column, Constant, Field, KeyLimits, Method, Model, Navigation, Readers, Resource, Role,
    Rows, Step, of_fleet,
};
use sea_query::{Expr, ExprTrait};

use super::bounds::Bounds;
use super::compile_error::CompileError;
use super::rule::{NEAR, Rule, either, leads, links_from_caller, parsed};
use super::sql::{column, exists, from};
use super::value::{TypedExpr, ValueKind};
use super::{Caller, computed};
use crate::Dialect;

/// The name of the first table of a statement, whose rows it is about.
pub(super) const FIRST_TABLE: &str = "t0";

/// Makes one statement.
pub(super) struct Compiler<'a> {
    pub(super) model: &'a Model,
    pub(super) dialect: Dialect,
    pub(super) caller: &'a Caller,
    /// The moment of the request, in milliseconds.
    pub(super) now: i64,
    /// Values of `@name` in the request.
    pub(super) aliases: &'a BTreeMap<String, Literal>,
    /// Rows and links are shown with their addresses, below this path.
    pub(super) addresses: Option<&'a str>,
    /// Names that nothing has are passed over in `$select` and `$expand`.
    pub(super) lenient: bool,
    /// Names of the configuration variable that switches the tunnel off, the current one first.
    pub(super) tunnel_variables: &'a [String],
    /// What addresses of files begin with.
    pub(super) origin: &'a str,
    /// Rows that a filter begins at are ones that the caller may read, and not only change or delete.
    pub(super) from_is_readable: bool,
    /// The request is for one row, which is known by its key: it is looked at by itself.
    pub(super) for_one_row: bool,
    /// What the request may cost.
    pub(super) bounds: &'static Bounds,
    tables: Cell<usize>,
}

/// A row of a resource, by the name that its table has in the statement.
#[derive(Debug, Clone)]
pub(super) struct TableRow<'a> {
    pub(super) resource: &'a Resource,
    pub(super) alias: String,
}

impl TableRow<'_> {
    pub(super) fn column(&self, name: &str) -> Expr {
        column(&self.alias, name)
    }
}

/// What names in an expression mean.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    /// The row that is asked about.
    pub(super) it: TableRow<'a>,
    /// Variables of lambdas, the innermost last.
    pub(super) variables: Vec<(String, TableRow<'a>)>,
    /// The expression is a rule of the model: it sees every row, and `@actor` and `@user` are the caller's.
    pub(super) rule: bool,
    /// `any`, `all` and `$count` around it.
    pub(super) lambdas: Lambdas,
}

/// `any`, `all` and `$count` that stand in each other.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lambdas {
    all: usize,
    to_many: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn of(it: TableRow<'a>) -> Self {
        Scope {
            it,
            variables: Vec::new(),
            rule: false,
            lambdas: Lambdas::default(),
        }
    }

    /// What is asked of rows behind links, one level deeper.
    pub(super) fn deeper(
        &self,
        to_many: bool,
        bounds: &Bounds,
        at: usize,
    ) -> Result<Self, CompileError> {
        let mut inner = self.clone();
        if self.rule {
            return Ok(inner);
        }
        inner.lambdas.all += 1;
        inner.lambdas.to_many += usize::from(to_many);
        if inner.lambdas.all > bounds.lambdas {
            let most = bounds.lambdas;
            let message = format!("`any`, `all` and `$count` can be nested at most {most} deep");
            return Err(CompileError::refused(at, message));
        }
        if inner.lambdas.to_many > bounds.lambdas_to_many {
            let message = format!(
                "`any`, `all` and `$count` on links to many records can be nested at most {} deep",
                bounds.lambdas_to_many
            );
            return Err(CompileError::refused(at, message));
        }
        Ok(inner)
    }

    pub(super) fn with(&self, variable: &str, row: TableRow<'a>) -> Self {
        let mut inner = self.clone();
        inner.variables.push((variable.to_owned(), row));
        inner
    }
}

/// What somebody wants to do with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// What the data API does.
    Method(Method),
    /// Something else.
    Action(Action),
}

impl From<Action> for Right {
    fn from(action: Action) -> Self {
        Right::Action(action)
    }
}

impl From<Method> for Right {
    fn from(method: Method) -> Self {
        Right::Method(method)
    }
}

impl<'a> Compiler<'a> {
    pub(super) fn new(
        model: &'a Model,
        dialect: Dialect,
        caller: &'a Caller,
        now: i64,
        aliases: &'a BTreeMap<String, Literal>,
    ) -> Self {
        Compiler {
            model,
            dialect,
            caller,
            now,
            aliases,
            addresses: None,
            lenient: false,
            tunnel_variables: &[],
            origin: "",
            from_is_readable: true,
            for_one_row: false,
            bounds: Bounds::of(caller),
            tables: Cell::new(0),
        }
    }

    /// The resource that a request names.
    pub(super) fn resource(&self, name: &Name) -> Result<&'a Resource, CompileError> {
        self.model.resource(&name.text).ok_or_else(|| {
            CompileError::no_rights(name.at, format!("there is no resource `{}`", name.text))
        })
    }

    /// The resource at the end of a navigation.
    pub(super) fn target(&self, navigation: &Navigation) -> Result<&'a Resource, CompileError> {
        self.model
            .resource(navigation.to)
            .ok_or_else(|| CompileError::broken(format!("`{}` leads nowhere", navigation.name)))
    }

    /// A table of the statement.
    pub(super) fn row(&self, resource: &'a Resource) -> Result<TableRow<'a>, CompileError> {
        let alias = self.unused_name()?;
        Ok(TableRow { resource, alias })
    }

    /// A name in the statement that nothing else has.
    pub(super) fn unused_name(&self) -> Result<String, CompileError> {
        let number = self.tables.get();
        let most = self.bounds.tables;
        if number >= most {
            return Err(CompileError::refused(
                0,
                format!("the request leads to more than {most} tables at once; ask in parts"),
            ));
        }
        self.tables.set(number + 1);
        Ok(format!("t{number}"))
    }

    /// What holds for the rows of a resource that the caller may do this with; nothing where it may with all.
    /// A rule of the model sees every row.
    pub(super) fn permitted(
        &self,
        row: &TableRow<'a>,
        right: Right,
        in_rule: bool,
        at: usize,
    ) -> Result<Option<Expr>, CompileError> {
        let only = self.only(row)?;
        if in_rule {
            return Ok(only);
        }
        // What is of the user who asks is nobody else's to ask for, as where a filter leads to users.
        let is_of_users = row.resource.only.is_some_and(|rule| rule.contains("@user"));
        if is_of_users && self.caller.roles().is_some() && self.caller.user().is_none() {
            let message = format!("this credential has no rights on `{}`", row.resource.name);
            return Err(CompileError::no_rights(at, message));
        }
        let rule = match self.rule(row, right)? {
            Rule::All => None,
            Rule::Where { what, .. } => Some(what),
            Rule::Nothing => {
                return Err(CompileError::no_rights(
                    at,
                    format!("this credential has no rights on `{}`", row.resource.name),
                ));
            }
        };
        Ok(match (only, rule) {
            (Some(only), Some(rule)) => Some(only.and(rule)),
            (one, other) => one.or(other),
        })
    }

    /// What holds for the rows of the table that are the resource's.
    fn only(&self, row: &TableRow<'a>) -> Result<Option<Expr>, CompileError> {
        let Some(text) = row.resource.only else {
            return Ok(None);
        };
        let mut scope = Scope::of(row.clone());
        scope.rule = true;
        Ok(Some(self.condition(&scope, &*parsed(text)?, false)?))
    }

    /// What holds for the rows that the caller may do this with: for all of its roles together.
    fn rule(&self, row: &TableRow<'a>, right: Right) -> Result<Rule, CompileError> {
        let Some(roles) = self.caller.roles() else {
            return Ok(Rule::All);
        };
        let mut together = Rule::Nothing;
        for role in roles {
            let mut rule = self.rule_of(role, row, right)?;
            if let (Some(limits), false) = (self.caller.limits(), role == Role::Guest) {
                rule = self.limited(limits, rule, row, right)?;
            }
            together = either(together, rule);
        }
        Ok(together)
    }

    /// What of a named key's rights is left by its limits.
    fn limited(
        &self,
        limits: KeyLimits,
        rule: Rule,
        row: &TableRow<'a>,
        right: Right,
    ) -> Result<Rule, CompileError> {
        let permitted = match right {
            Right::Method(method) => limits.permit(row.resource.table, method),
            Right::Action(action) => limits.permit_action(action),
        };
        if !permitted {
            return Ok(Rule::Nothing);
        }
        let (Some(_), Some(of_fleet)) = (limits.fleet, of_fleet(row.resource.table)) else {
            return Ok(rule);
        };
        let mut scope = Scope::of(row.clone());
        scope.rule = true;
        let of_fleet = self.condition(&scope, &*parsed(of_fleet)?, false)?;
        Ok(match rule {
            Rule::Nothing => Rule::Nothing,
            Rule::All => Rule::Where {
                what: of_fleet,
                links: Some(0),
            },
            Rule::Where { what, links } => Rule::Where {
                what: what.and(of_fleet),
                links,
            },
        })
    }

    /// As [`Compiler::permitted`], for reading the rows behind a link of a row that the caller may read: where
    /// the rule of the one follows from that of the other, it is not asked again.
    pub(super) fn permitted_behind(
        &self,
        navigation: &Navigation,
        from: &TableRow<'a>,
        to: &TableRow<'a>,
        in_rule: bool,
        at: usize,
    ) -> Result<Option<Expr>, CompileError> {
        if self.from_is_readable && self.follows(navigation, from.resource, to.resource) {
            self.only(to)
        } else {
            self.permitted(to, Method::Read.into(), in_rule, at)
        }
    }

    /// Whether every row behind a link of a row that the caller may read is one that it may read as well.
    fn follows(&self, navigation: &Navigation, from: &Resource, to: &Resource) -> bool {
        if self
            .caller
            .limits()
            .is_some_and(|limits| limits.fleet.is_some())
        {
            return false;
        }
        let Some(mut roles) = self.caller.roles() else {
            return false;
        };
        let readable = |resource: &Resource, role: Role| -> Vec<Rows> {
            let grants = resource.grants.iter();
            let grants = grants.filter(|one| one.role == role && one.methods.has(Method::Read));
            grants.map(|one| one.rows).collect()
        };
        match navigation.step {
            // The others are there for whoever reads the row that they lead to.
            Step::Many(link) => roles.all(|role| {
                readable(from, role).is_empty()
                    || readable(to, role).iter().any(|rows| leads(to, *rows, link))
            }),
            // The row is there only for whoever reads the other.
            Step::One(link) => roles.all(|role| {
                let rows = readable(from, role);
                rows.iter().all(|rows| leads(from, *rows, link))
            }),
            Step::Through { .. } => false,
        }
    }

    fn rule_of(&self, role: Role, row: &TableRow<'a>, right: Right) -> Result<Rule, CompileError> {
        let resource = row.resource;
        let granted: Vec<Rows> = match right {
            Right::Method(method) => {
                let grants = resource.grants.iter();
                let grants = grants.filter(|one| one.role == role && one.methods.has(method));
                grants.map(|one| one.rows).collect()
            }
            Right::Action(action) => {
                let permits = resource.permits.iter();
                let permits = permits.filter(|one| one.role == role && one.action == action);
                permits.map(|one| one.rows).collect()
            }
        };
        let mut together = Rule::Nothing;
        for rows in granted {
            let one = match rows {
                Rows::All => Rule::All,
                Rows::Where(text) => self.rule_where(row, text)?,
                Rows::Through(link) => self.rule_through(role, row, right, link)?,
            };
            together = either(together, one);
        }
        Ok(together)
    }

    /// The rule that a filter of the model is.
    fn rule_where(&self, row: &TableRow<'a>, text: &'static str) -> Result<Rule, CompileError> {
        let mut scope = Scope::of(row.clone());
        scope.rule = true;
        let rule = parsed(text)?;
        Ok(Rule::Where {
            what: self.condition(&scope, &rule, false)?,
            links: links_from_caller(&rule),
        })
    }

    /// The rule of the row that a link leads to.
    fn rule_through(
        &self,
        role: Role,
        row: &TableRow<'a>,
        right: Right,
        link: &'static str,
    ) -> Result<Rule, CompileError> {
        let navigation = row.resource.find_navigation(link).ok_or_else(|| {
            CompileError::broken(format!("`{}` has no `{link}`", row.resource.name))
        })?;
        let other = self.row(self.target(navigation)?)?;
        let needed = match right {
            Right::Method(Method::Read) => Method::Read,
            _ => Method::Update,
        };
        let mut select = from(other.resource.table, &other.alias);
        select.and_where_option(self.only(&other)?);
        let links = match self.rule_of(role, &other, needed.into())? {
            Rule::Nothing => return Ok(Rule::Nothing),
            Rule::All => None,
            Rule::Where { what, links } => {
                select.and_where(what);
                links
            }
        };
        let is_near = !self.for_one_row && links.is_some_and(|links| links <= NEAR + 1);
        let what = match navigation.step {
            Step::One(field) if is_near => {
                select.expr(other.column("id"));
                self.stored(row, field)?.in_subquery(select)
            }
            _ => {
                select.and_where(self.step(navigation, row, &other, true)?);
                exists(select)
            }
        };
        Ok(Rule::Where { what, links: None })
    }

    /// What holds where `to` is one of the rows that a navigation leads to.
    pub(super) fn step(
        &self,
        navigation: &Navigation,
        from: &TableRow<'a>,
        to: &TableRow<'a>,
        in_rule: bool,
    ) -> Result<Expr, CompileError> {
        Ok(match navigation.step {
            Step::One(field) => to.column("id").eq(self.stored(from, field)?),
            Step::Many(field) => self.stored(to, field)?.eq(from.column("id")),
            Step::Through { between, near, far } => {
                let between = self
                    .model
                    .resource(between)
                    .ok_or_else(|| CompileError::broken(format!("there is no `{between}`")))?;
                let between = self.row(between)?;
                let permitted = self.permitted(&between, Method::Read.into(), in_rule, 0)?;
                let mut select = super::sql::from(between.resource.table, &between.alias);
                select
                    .and_where_option(permitted)
                    .and_where(between.column(near).eq(from.column("id")))
                    .and_where(between.column(far).eq(to.column("id")));
                exists(select)
            }
        })
    }

    /// What a field of a row is in SQL.
    pub(super) fn stored(&self, row: &TableRow<'a>, name: &str) -> Result<Expr, CompileError> {
        let field = row.resource.find_field(name).ok_or_else(|| {
            CompileError::broken(format!("`{}` has no `{name}`", row.resource.name))
        })?;
        self.kept(row, field)
    }

    /// What a field of a row is to the caller: null where it is shown to others alone, or to nobody.
    pub(super) fn field(&self, row: &TableRow<'a>, field: &Field) -> Result<Expr, CompileError> {
        let kept = match (self.kept(row, field)?, field.secret_where) {
            (kept, None) => kept,
            (kept, Some(flag)) => Expr::case(row.column(flag).eq(false), kept).into(),
        };
        let Some(role) = self.caller.role() else {
            return Ok(kept);
        };
        let visible = match field.readers {
            Readers::OfTheRow => return Ok(kept),
            Readers::Changers if role == Role::DeviceKey => return Ok(kept),
            // A key that is for looking alone sees what its user does.
            Readers::Changers => self.rule_of(role, row, Method::Update.into())?,
            Readers::Where(text) => self.rule_where(row, text)?,
        };
        Ok(match visible {
            Rule::All => kept,
            Rule::Nothing => nothing(ValueKind::of(&field.kind)),
            Rule::Where { what, .. } => Expr::case(what, kept).into(),
        })
    }

    /// What a field of a row is, whoever asks.
    pub(super) fn kept(&self, row: &TableRow<'a>, field: &Field) -> Result<Expr, CompileError> {
        match field.column {
            Column::Stored(name) => Ok(row.column(name)),
            Column::Constant(Constant::Null) => Ok(nothing(ValueKind::of(&field.kind))),
            Column::Constant(Constant::Boolean(value)) => Ok(value.into()),
            Column::Computed(name) => computed::expression(self, row, name).ok_or_else(|| {
                CompileError::broken(format!(
                    "nothing says how to work out `{name}` of `{}`",
                    row.resource.name
                ))
            })?,
        }
    }

    /// The field that a request names; those that nobody reads are not there.
    pub(super) fn named_field(&self, resource: &'a Resource, name: &str) -> Option<&'a Field> {
        resource.find_field(name).filter(|field| !field.secret)
    }

    /// What holds for the row that a key means.
    pub(super) fn key(
        &self,
        row: &TableRow<'a>,
        key: &Key,
        rule: bool,
    ) -> Result<Expr, CompileError> {
        let given: Vec<(&str, &Value, usize)> = match key {
            Key::Id(value) => vec![("id", value, 0)],
            Key::Fields(fields) => fields
                .iter()
                .map(|(name, value)| (name.text.as_str(), value, name.at))
                .collect(),
        };
        let named: Vec<&str> = given.iter().map(|(name, ..)| *name).collect();
        let is_key = named == ["id"]
            || row.resource.unique.iter().any(|set| {
                set.len() == named.len() && set.iter().all(|field| named.contains(field))
            });
        let at = given.first().map_or(0, |(.., at)| *at);
        if !is_key {
            return Err(CompileError::refused(
                at,
                format!(
                    "`{}` has no key of {}",
                    row.resource.name,
                    named.join(" and ")
                ),
            ));
        }
        self.equal(row, given, rule)
    }

    /// What holds for the rows whose fields have these values.
    pub(super) fn equal<'g>(
        &self,
        row: &TableRow<'a>,
        given: impl IntoIterator<Item = (&'g str, &'g Value, usize)>,
        rule: bool,
    ) -> Result<Expr, CompileError> {
        let each = given.into_iter().map(|(name, value, at)| {
            let field = self.named_field(row.resource, name).ok_or_else(|| {
                CompileError::refused(at, format!("`{}` has no field `{name}`", row.resource.name))
            })?;
            let value = self
                .constant(value, at, rule)?
                .read_as(ValueKind::of(&field.kind))
                .map_err(|why| CompileError::refused(at, why))?;
            Ok(self.field(row, field)?.eq(value.sql))
        });
        let each = each.collect::<Result<Vec<_>, CompileError>>()?;
        let all = each.into_iter().reduce(Expr::and);
        all.ok_or_else(|| CompileError::refused(0, "a key has a value".to_owned()))
    }

    /// A constant, or the value of a parameter.
    pub(super) fn constant(
        &self,
        value: &Value,
        at: usize,
        rule: bool,
    ) -> Result<TypedExpr, CompileError> {
        let literal = match value {
            Value::Literal(literal) => literal.clone(),
            Value::Alias(name) if rule => self.caller.parameter(&name.text)?,
            Value::Alias(name) => self.aliases.get(&name.text).cloned().ok_or_else(|| {
                CompileError::refused(at, format!("`@{}` has no value", name.text))
            })?,
        };
        TypedExpr::constant(&literal, at).map_err(|why| CompileError::refused(at, why))
    }
}

/// Null, of the type that values of a kind have.
pub(super) fn nothing(kind: ValueKind) -> Expr {
    Expr::cust(match kind {
        ValueKind::Null | ValueKind::Text | ValueKind::Json => "CAST(NULL AS TEXT)",
        ValueKind::Boolean => "CAST(NULL AS BOOLEAN)",
        ValueKind::Integer | ValueKind::Moment | ValueKind::Duration => "CAST(NULL AS BIGINT)",
        ValueKind::Number => "CAST(NULL AS DOUBLE PRECISION)",
    })
}
