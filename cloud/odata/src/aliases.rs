//! The parameters (`@name`) that a request uses.

use crate::error::ParseError;
use crate::request::{Address, Expression, Key, Name, Operand, Options, PropertyPath, Value};

/// Checks that each parameter used has a value.
pub(crate) fn check(address: &Address, options: &Options) -> Result<(), ParseError> {
    let mut used = Vec::new();
    if let Address::Resource(path) = address {
        let keys = path.links.iter().map(|(_, key)| key);
        for key in keys.chain([&path.key]).flatten() {
            key.aliases(&mut used);
        }
    }
    options.used_aliases(&mut used);
    let mut used = used.into_iter();
    match used.find(|name| !options.aliases.contains_key(&name.text)) {
        None => Ok(()),
        Some(name) => Err(ParseError::new(
            name.at,
            format!("the parameter `@{}` has no value in the query", name.text),
        )),
    }
}

impl Key {
    fn aliases<'a>(&'a self, used: &mut Vec<&'a Name>) {
        let value = |value: &'a Value| match value {
            Value::Alias(name) => Some(name),
            Value::Literal(_) => None,
        };
        match self {
            Key::Id(id) => used.extend(value(id)),
            Key::Fields(fields) => used.extend(fields.iter().filter_map(|(_, it)| value(it))),
        }
    }
}

impl Options {
    fn used_aliases<'a>(&'a self, used: &mut Vec<&'a Name>) {
        let orders = self.order_by.iter().map(|order| &order.by);
        for expression in self.filter.iter().chain(orders) {
            expression.aliases(used);
        }
        for expand in &self.expand {
            expand.options.used_aliases(used);
        }
    }
}

impl PropertyPath {
    fn aliases<'a>(&'a self, used: &mut Vec<&'a Name>) {
        for key in self
            .segments
            .iter()
            .filter_map(|segment| segment.key.as_ref())
        {
            key.aliases(used);
        }
    }
}

impl Expression {
    fn aliases<'a>(&'a self, used: &mut Vec<&'a Name>) {
        match &self.operand {
            Operand::Value(Value::Alias(name)) => used.push(name),
            Operand::Value(Value::Literal(_)) => {}
            Operand::Property(path) => path.aliases(used),
            Operand::Lambda(lambda) => {
                lambda.path.aliases(used);
                lambda.body.aliases(used);
            }
            Operand::Count(count) => {
                count.path.aliases(used);
                count.filter.iter().for_each(|filter| filter.aliases(used));
            }
            Operand::Not(inner) | Operand::Negative(inner) => inner.aliases(used),
            Operand::Compare(_, both) | Operand::Arithmetic(_, both) => {
                both.iter().for_each(|one| one.aliases(used));
            }
            Operand::In(value, list) => {
                value.aliases(used);
                list.iter().for_each(|item| item.aliases(used));
            }
            Operand::Call(_, all) | Operand::And(all) | Operand::Or(all) => {
                all.iter().for_each(|one| one.aliases(used));
            }
        }
    }
}
