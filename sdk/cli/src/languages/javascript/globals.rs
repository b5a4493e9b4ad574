//! Members of the global objects of JavaScript, which belong to the language and not to a module of the SDK.

#[cfg(test)]
use crate::languages::syntax_tree::Grammar;
use crate::languages::syntax_tree::{Capture, SyntaxTree};

/// Members by the object's name or by `globalThis`. A property of an object of the author's own may have the same name.
const MEMBERS: &str = r#"
    (member_expression
        object: (identifier) @object
        (optional_chain)? @question
        property: (property_identifier) @property) @member
    (member_expression
        object: (member_expression
            object: (identifier) @global
            property: (property_identifier) @object)
        (optional_chain)? @question
        property: (property_identifier) @property
        (#eq? @global "globalThis")) @member"#;
const FUNCTIONS: &str = "[
    (arrow_function)
    (class_body)
    (function_declaration)
    (function_expression)
    (generator_function)
    (generator_function_declaration)
    (method_definition)
] @found";

/// A member of a global object, such as `Date.now`.
pub(super) struct GlobalMember<'tree> {
    pub(super) object: &'tree str,
    pub(super) property: &'tree str,
    /// Whether `?.` precedes the property.
    pub(super) is_optional: bool,
    pub(super) place: Capture<'tree>,
}

/// Returns the members in a source.
pub(super) fn members(source: &SyntaxTree) -> impl Iterator<Item = GlobalMember<'_>> {
    let found = source.matches(MEMBERS, ["object", "question", "property", "member"]);
    found
        .into_iter()
        .filter_map(|[object, question, property, member]| {
            Some(GlobalMember {
                object: object?.text,
                property: property?.text,
                is_optional: question.is_some(),
                place: member?,
            })
        })
}

/// Returns the first of some places that is in a function or class, as opposed to those that run while the build imports the plugin.
pub(super) fn first_in_function<'tree>(
    source: &'tree SyntaxTree,
    places: impl IntoIterator<Item = Capture<'tree>>,
) -> Option<Capture<'tree>> {
    let functions = source.ranges(FUNCTIONS);
    let places = places.into_iter().filter(|place| functions.contain(place));
    places.min_by_key(|place| place.node.start_byte())
}

/// Returns a source in JavaScript with this text.
#[cfg(test)]
pub(super) fn parsed(text: &str) -> SyntaxTree {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    SyntaxTree::read(file.path(), Grammar::JavaScript)
}
