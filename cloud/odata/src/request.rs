//! What a request says.

use std::collections::BTreeMap;

use crate::function::Function;

/// A request to the data API.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Which records.
    pub address: Address,
    /// What of them.
    pub options: Options,
    /// Itself in one piece, `path?query`, which the places in it count the bytes of.
    pub text: String,
}

/// What a path names.
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
    /// The resource that it begins at.
    pub resource: Name,
    /// Which of its records; all of them without one.
    pub key: Option<Key>,
    /// The links that are followed from there, in order, each to one record or to those that the key names.
    pub links: Vec<(Name, Option<Key>)>,
    /// What comes last.
    pub tail: Tail,
}

/// How a path ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Tail {
    /// With the records themselves.
    Records,
    /// `/$count`: with how many there are.
    Count,
    /// `/$links/NAME`: with the references of a link.
    Links(Name),
}

/// What stands in the parentheses behind a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    /// `(5)`, `('5')` or `(@id)`.
    Id(Value),
    /// `(uuid='…')` or `(device=7,tag_key='env')`: the fields of an alternate key, in their order.
    Fields(Vec<(Name, Value)>),
}

/// A value, or the parameter that has it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// As it stands.
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
    /// A number with a fraction or an exponent, as it stands: which type holds it is the model's to say.
    Decimal(String),
    /// `'text'`, without its quotes.
    Text(String),
    /// `datetime'…'` or `date'…'`: the text in the quotes, in ISO 8601 unless the caller errs.
    DateTime(String),
    /// `duration'…'`: likewise.
    Duration(String),
}

/// A word of the request that names something of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// As it stands.
    pub text: String,
    /// Where, in bytes of `path?query`.
    pub at: usize,
}

/// What is asked of records: the query, and the same again in the parentheses of an expansion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// Which fields; those of the model's default without it.
    pub select: Option<Select>,
    /// Links to be followed and shown.
    pub expand: Vec<Expand>,
    /// Which records.
    pub filter: Option<Expression>,
    /// In which order; by the first of these, then by the next.
    pub order_by: Vec<Order>,
    /// At most this many.
    pub top: Option<u64>,
    /// Without so many of the first.
    pub skip: Option<u64>,
    /// `$format=json;odata.metadata=full`: with the addresses of rows and links.
    pub full_metadata: bool,
    /// Values of the parameters `@name`; of the whole request alone.
    pub aliases: BTreeMap<String, Literal>,
    /// `apikey`: a credential; of the whole request alone.
    pub api_key: Option<String>,
    /// `returnResource=false` (or 0): a created record is answered by its id alone.
    pub returns_id_alone: bool,
}

/// `$select`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Select {
    /// `*`.
    All,
    /// These.
    Fields(Vec<Name>),
}

/// One link of `$expand`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expand {
    /// The link.
    pub link: Name,
    /// `link/$count`: how many, rather than which.
    pub count: bool,
    /// What is asked of the records behind it.
    pub options: Options,
}

/// One part of `$orderby`.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// What is compared.
    pub by: Expression,
    /// Which comes first.
    pub direction: Direction,
}

/// Which of two values comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The lesser one; also where nothing is said.
    Ascending,
    /// The greater one.
    Descending,
}

/// A condition or a value, and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Itself.
    pub operand: Operand,
    /// Where, in bytes of `path?query`.
    pub at: usize,
}

/// What an expression is.
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
    /// Two values side by side.
    Compare(Comparison, Box<[Expression; 2]>),
    /// `x in (…)`: whether it is one of them.
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

/// One name of a path, with the key of the record that is meant, where one is given.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSegment {
    /// A variable, a link or a field.
    pub name: Name,
    /// `device_tag(tag_key='x')`.
    pub key: Option<Key>,
}

/// A condition on the records behind a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Lambda {
    /// The link.
    pub path: PropertyPath,
    /// Whether one of them is enough.
    pub quantifier: Quantifier,
    /// What a record is called in the condition; it may be a keyword's word.
    pub variable: Name,
    /// The condition.
    pub body: Expression,
}

/// How many of the records a lambda's condition has to hold for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// At least one.
    Any,
    /// Each; so it holds where there is none.
    All,
}

/// How many records are behind a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// The link.
    pub path: PropertyPath,
    /// Those for which this holds; all of them without it.
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

/// What is made of two values.
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
