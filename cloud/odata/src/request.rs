//! A parsed request.

use std::collections::BTreeMap;

use crate::function::Function;

/// A request to the data API.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The records addressed.
    pub address: Address,
    /// What is requested of them.
    pub options: Options,
    /// The whole request, `path?query`; places in it count the bytes of this text.
    pub text: String,
}

/// What a path addresses.
#[derive(Debug, Clone, PartialEq)]
pub enum Address {
    /// `/$metadata`: the description of the model.
    Metadata,
    /// Records.
    Resource(ResourcePath),
}

/// `/device(7)/belongs_to__application/…`.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourcePath {
    /// The resource that the path begins at.
    pub resource: Name,
    /// The key of one of its records; without a key, all of them.
    pub key: Option<Key>,
    /// The links that are followed from there, in order, each to one record or to those that its key selects.
    pub links: Vec<(Name, Option<Key>)>,
    /// The end of the path.
    pub tail: Tail,
}

/// How a path ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Tail {
    /// The records themselves.
    Records,
    /// `/$count`: their number.
    Count,
    /// `/$links/NAME`: the references of a link.
    Links(Name),
}

/// The key in the parentheses after a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    /// `(5)`, `('5')` or `(@id)`.
    Id(Value),
    /// `(uuid='…')` or `(device=7,tag_key='env')`: the fields of an alternate key, in their order.
    Fields(Vec<(Name, Value)>),
}

/// A value, or the parameter that holds it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The value itself.
    Literal(Literal),
    /// `@name`, whose value is in [`Options::aliases`].
    Alias(Name),
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or an exponent, as written: the model decides which type holds it.
    Decimal(String),
    /// `'text'`, without its quotes.
    Text(String),
    /// `datetime'…'` or `date'…'`: the text in the quotes, which should be in ISO 8601.
    DateTime(String),
    /// `duration'…'`: the text in the quotes, likewise.
    Duration(String),
}

/// A word of the request that names a part of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The word as written.
    pub text: String,
    /// Its place, in bytes of `path?query`.
    pub at: usize,
}

/// What is requested of records: the query, or the options in the parentheses of an expansion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// The fields to return; without it, the model's default fields.
    pub select: Option<Select>,
    /// The links to follow and show.
    pub expand: Vec<Expand>,
    /// The condition that records must meet.
    pub filter: Option<Expression>,
    /// The sort order: by the first of these, then by the next.
    pub order_by: Vec<Order>,
    /// The maximum number of records.
    pub top: Option<u64>,
    /// How many records to skip at the beginning.
    pub skip: Option<u64>,
    /// `$format=json;odata.metadata=full`: include the addresses of rows and links.
    pub full_metadata: bool,
    /// Values of the parameters (`@name`); only for the whole request.
    pub aliases: BTreeMap<String, Literal>,
    /// `apikey`: a credential; only for the whole request.
    pub api_key: Option<String>,
    /// `returnResource=false` (or 0): the response to a creation contains only the id.
    pub returns_id_alone: bool,
}

/// `$select`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Select {
    /// `*`.
    All,
    /// These fields.
    Fields(Vec<Name>),
}

/// One link of `$expand`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expand {
    /// The link.
    pub link: Name,
    /// `link/$count`: the number of records rather than the records.
    pub count: bool,
    /// What is requested of the linked records.
    pub options: Options,
}

/// One part of `$orderby`.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The value to sort by.
    pub by: Expression,
    /// Which value comes first.
    pub direction: Direction,
}

/// Which of two values comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The lesser one; also the default.
    Ascending,
    /// The greater one.
    Descending,
}

/// A condition or a value, and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// The condition or value itself.
    pub operand: Operand,
    /// Where it begins, in bytes of `path?query`.
    pub at: usize,
}

/// The kinds of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A constant or a parameter.
    Value(Value),
    /// A field, perhaps of a linked record.
    Property(PropertyPath),
    /// `link/any(x:…)` or `link/all(x:…)`.
    Lambda(Box<Lambda>),
    /// `link/$count`.
    Count(Box<Count>),
    /// A function of values.
    Call(Function, Vec<Expression>),
    /// `not`.
    Not(Box<Expression>),
    /// `-`.
    Negative(Box<Expression>),
    /// A comparison of two values.
    Compare(Comparison, Box<[Expression; 2]>),
    /// `x in (…)`: whether the value is one of those in the list.
    In(Box<Expression>, Vec<Expression>),
    /// Arithmetic of two values.
    Arithmetic(Arithmetic, Box<[Expression; 2]>),
    /// All of them hold.
    And(Vec<Expression>),
    /// One of them holds.
    Or(Vec<Expression>),
}

/// `d/belongs_to__application/slug`: a lambda's variable, links, and a field at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyPath {
    /// At least one.
    pub segments: Vec<PathSegment>,
}

/// One name of a path, with a key if one is given.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSegment {
    /// A variable, a link or a field.
    pub name: Name,
    /// `device_tag(tag_key='x')`.
    pub key: Option<Key>,
}

/// A condition on the linked records.
#[derive(Debug, Clone, PartialEq)]
pub struct Lambda {
    /// The link.
    pub path: PropertyPath,
    /// Whether one matching record is enough.
    pub quantifier: Quantifier,
    /// The name of a record in the condition; it may be a keyword.
    pub variable: Name,
    /// The condition.
    pub body: Expression,
}

/// How many of the records must meet a lambda's condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// At least one.
    Any,
    /// Each one; so it holds if there are none.
    All,
}

/// The number of linked records.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// The link.
    pub path: PropertyPath,
    /// Counts only the records for which this holds; without it, all of them.
    pub filter: Option<Expression>,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `eq`; null equals null.
    Equal,
    /// `ne`; a value is not null.
    NotEqual,
    /// `gt`.
    Greater,
    /// `ge`.
    GreaterOrEqual,
    /// `lt`.
    Less,
    /// `le`.
    LessOrEqual,
}

/// Arithmetic operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `add`.
    Add,
    /// `sub`.
    Subtract,
    /// `mul`.
    Multiply,
    /// `div`.
    Divide,
    /// `mod`.
    Remainder,
}
