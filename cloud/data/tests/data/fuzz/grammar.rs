//! Generates requests of the query language for existing resources from numbers: each number chooses an alternative of
//! the language. Fewer and smaller numbers make simpler requests.

use odata_names::*;
use resources::{Field, Model, Resource, Type};

/// The maximum nesting depth of links and expressions.
const DEEPEST: usize = 3;

/// Returns the request for these numbers, without the version.
pub(crate) fn request(model: &'static Model, numbers: &[u16]) -> String {
    let mut grammar = Grammar {
        model,
        numbers: numbers.iter(),
    };
    grammar.request()
}

/// Pieces of the language that need no model.
mod odata_names {
    pub(super) const COMPARED: [&str; 6] = ["eq", "ne", "gt", "ge", "lt", "le"];
    pub(super) const SIGNS: [&str; 5] = ["add", "sub", "mul", "div", "mod"];
    pub(super) const NUMBERS: [&str; 12] = [
        "1",
        "0",
        "7",
        "-1",
        "5.5",
        "5.0",
        "null",
        "9223372036854775807",
        "-9223372036854775808",
        "true",
        "'5'",
        "0.1",
    ];
    pub(super) const TEXTS: [&str; 10] = [
        "'a'",
        "''",
        "'calm-river'",
        "'it''s'",
        "'%25_'",
        "'Éσς'",
        "'5'",
        "null",
        "'\u{1F600}'",
        "' a '",
    ];
    pub(super) const MOMENTS: [&str; 5] = [
        "now()",
        "datetime'2026-01-02T03:04:05.678Z'",
        "datetime'1969-12-31T23:59:59.999Z'",
        "now() sub duration'P1D'",
        "null",
    ];
}

struct Grammar<'a> {
    model: &'static Model,
    numbers: std::slice::Iter<'a, u16>,
}

impl Grammar<'_> {
    /// Returns the next number, below `end`.
    fn below(&mut self, end: usize) -> usize {
        usize::from(self.numbers.next().copied().unwrap_or(0)) % end.max(1)
    }

    fn pick<'t>(&mut self, words: &[&'t str]) -> &'t str {
        words[self.below(words.len())]
    }

    /// Returns true once in this many times.
    fn rarely(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    fn request(&mut self) -> String {
        let resources = self.model.resources();
        let resource = &resources[self.below(resources.len())];
        let mut path = format!("/{}", resource.name);
        let mut shown = resource;
        if self.rarely(3) {
            path.push_str(&self.key(resource));
            if self.rarely(2)
                && let Some((name, to)) = self.link(resource)
            {
                if self.rarely(4) {
                    path.push_str("/$links");
                }
                path.push_str(&format!("/{name}"));
                shown = to;
            }
        }
        if self.rarely(6) {
            path.push_str("/$count");
        }
        let options = self.options(shown, DEEPEST, "&");
        if options.is_empty() {
            path
        } else {
            format!("{path}?{options}")
        }
    }

    fn key(&mut self, resource: &'static Resource) -> String {
        match resource.unique.get(self.below(resource.unique.len() + 1)) {
            Some(fields) => {
                let mut pairs = Vec::new();
                for name in fields {
                    let value = match resource.find_field(name).map(|field| field.kind) {
                        Some(Type::Integer | Type::Link { .. }) => self.pick(&["7", "1", "4"]),
                        _ => self.pick(&TEXTS[..7]),
                    };
                    pairs.push(format!("{name}={value}"));
                }
                format!("({})", pairs.join(","))
            }
            None => format!("({})", self.pick(&["7", "4", "1", "77", "'7'", "-1", "@a"])),
        }
    }

    fn link(&mut self, resource: &'static Resource) -> Option<(&'static str, &'static Resource)> {
        let links = &resource.navigations;
        let link = links.get(self.below(links.len()))?;
        Some((link.name, self.model.resource(link.to)?))
    }

    fn options(&mut self, resource: &'static Resource, depth: usize, between: &str) -> String {
        let mut options = Vec::new();
        if self.rarely(2) {
            options.push(format!("$filter={}", self.condition(resource, "", depth)));
        }
        if self.rarely(3) {
            options.push(format!("$select={}", self.fields(resource)));
        }
        if self.rarely(3) && depth > 0 {
            options.push(format!("$expand={}", self.expand(resource, depth - 1)));
        }
        if self.rarely(3) {
            options.push(format!("$orderby={}", self.order(resource)));
        }
        if self.rarely(4) {
            options.push(format!("$top={}", self.pick(&["1", "2", "0", "1000"])));
        }
        if self.rarely(6) {
            options.push(format!("$skip={}", self.pick(&["1", "0", "100"])));
        }
        if self.rarely(9) {
            options.push(
                self.pick(&[
                    "$count=true",
                    "$count=false",
                    "$inlinecount=allpages",
                    "$format=json",
                ])
                .to_owned(),
            );
        }
        options.join(between)
    }

    fn field(&mut self, resource: &'static Resource) -> &'static Field {
        let fields = &resource.fields;
        &fields[self.below(fields.len())]
    }

    fn fields(&mut self, resource: &'static Resource) -> String {
        let mut names = Vec::new();
        for _ in 0..=self.below(3) {
            names.push(self.field(resource).name);
        }
        names.join(",")
    }

    fn expand(&mut self, resource: &'static Resource, depth: usize) -> String {
        let mut expanded: Vec<(&str, String)> = Vec::new();
        for _ in 0..=self.below(2) {
            let Some((name, to)) = self.link(resource) else {
                return "id".to_owned();
            };
            if expanded.iter().any(|(other, _)| *other == name) {
                continue;
            }
            let shown = match self.below(5) {
                4 => format!("{name}/$count"),
                3 => name.to_owned(),
                _ => match self.options(to, depth, ";") {
                    options if options.is_empty() => name.to_owned(),
                    options => format!("{name}({options})"),
                },
            };
            expanded.push((name, shown));
        }
        let expanded: Vec<String> = expanded.into_iter().map(|(_, shown)| shown).collect();
        expanded.join(",")
    }

    /// Generates an order that ends with the row's number, if it has one, so that it is unambiguous.
    fn order(&mut self, resource: &'static Resource) -> String {
        let mut orders = Vec::new();
        for _ in 0..=self.below(2) {
            let by = match (self.below(4), self.link(resource)) {
                (3, Some((name, to))) => format!("{name}/{}", self.field(to).name),
                (2, Some((name, _))) => format!("{name}/$count"),
                _ => self.field(resource).name.to_owned(),
            };
            orders.push(format!("{by}{}", self.pick(&["", " asc", " desc"])));
        }
        orders.push("id".to_owned());
        orders.join(",")
    }

    fn condition(&mut self, resource: &'static Resource, of: &str, depth: usize) -> String {
        let deeper = if depth == 0 { 7 } else { 11 };
        match self.below(deeper) {
            0 | 1 => self.comparison(resource, of),
            2 => {
                let (one, other) = (self.text(resource, of, 1), self.text(resource, of, 1));
                let function = self.pick(&["contains", "startswith", "endswith", "substringof"]);
                format!("{function}({one},{other})")
            }
            3 => {
                let (one, other) = (self.text(resource, of, 1), self.text(resource, of, 1));
                format!("{one} {} {other}", self.pick(&COMPARED))
            }
            4 => {
                let (one, other) = (self.number(resource, of, 2), self.number(resource, of, 2));
                format!("{one} {} {other}", self.pick(&COMPARED))
            }
            5 => {
                let name = self.field(resource).name;
                let (one, other) = (self.pick(&NUMBERS), self.pick(&TEXTS));
                match self.below(2) {
                    0 => format!("{of}{name} in ({one},{})", self.pick(&NUMBERS)),
                    _ => format!("{of}{name} in ({other},{})", self.pick(&TEXTS)),
                }
            }
            6 => self
                .pick(&["true", "false", "1 eq 1", "null eq null", "not(1 eq 2)"])
                .to_owned(),
            7 | 8 => {
                let Some((name, to)) = self.link(resource) else {
                    return "true".to_owned();
                };
                let alias = ["x", "y", "z", "w"][depth.min(3)];
                let inner = self.condition(to, &format!("{alias}/"), depth - 1);
                format!("{of}{name}/{}({alias}:{inner})", self.pick(&["any", "all"]))
            }
            9 => format!("not({})", self.condition(resource, of, depth - 1)),
            _ => {
                let one = self.condition(resource, of, depth - 1);
                let other = self.condition(resource, of, depth - 1);
                format!("({one} {} {other})", self.pick(&["and", "or"]))
            }
        }
    }

    /// Generates a comparison of a field with a value of its kind, or of another.
    fn comparison(&mut self, resource: &'static Resource, of: &str) -> String {
        let field = self.field(resource);
        let value = match (self.rarely(8), field.kind) {
            (false, Type::Integer | Type::BigInteger | Type::Link { .. } | Type::Boolean) => {
                self.pick(&NUMBERS)
            }
            (false, Type::Timestamp) => self.pick(&MOMENTS),
            _ => self.pick(&TEXTS),
        };
        format!("{of}{} {} {value}", field.name, self.pick(&COMPARED))
    }

    fn number(&mut self, resource: &'static Resource, of: &str, depth: usize) -> String {
        match self.below(if depth == 0 { 3 } else { 7 }) {
            0 => self.pick(&NUMBERS).to_owned(),
            1 => format!("{of}{}", self.field(resource).name),
            2 => match self.link(resource) {
                Some((name, _)) => format!("{of}{name}/$count"),
                None => "1".to_owned(),
            },
            3 => format!("length({})", self.text(resource, of, depth - 1)),
            4 => format!(
                "{}({})",
                self.pick(&["year", "month", "day", "hour", "minute", "second"]),
                self.pick(&MOMENTS)
            ),
            5 => format!(
                "{}({})",
                self.pick(&["round", "floor", "ceiling", "-"]),
                self.number(resource, of, depth - 1)
            ),
            _ => {
                let one = self.number(resource, of, depth - 1);
                let other = self.number(resource, of, depth - 1);
                format!("({one} {} {other})", self.pick(&SIGNS))
            }
        }
    }

    fn text(&mut self, resource: &'static Resource, of: &str, depth: usize) -> String {
        match self.below(if depth == 0 { 3 } else { 7 }) {
            0 => self.pick(&TEXTS).to_owned(),
            1 => format!("{of}{}", self.field(resource).name),
            2 => match self.link(resource) {
                Some((name, to)) => format!("{of}{name}/{}", self.field(to).name),
                None => "'x'".to_owned(),
            },
            3 => format!(
                "{}({})",
                self.pick(&["tolower", "toupper", "trim"]),
                self.text(resource, of, depth - 1)
            ),
            4 => {
                let (one, at) = (self.text(resource, of, depth - 1), self.pick(&NUMBERS));
                format!("substring({one},{at})")
            }
            5 => {
                let one = self.text(resource, of, depth - 1);
                format!("concat({one},{})", self.text(resource, of, depth - 1))
            }
            _ => {
                let (one, two) = (self.text(resource, of, depth - 1), self.pick(&TEXTS));
                format!("replace({one},{two},{})", self.pick(&TEXTS))
            }
        }
    }
}
