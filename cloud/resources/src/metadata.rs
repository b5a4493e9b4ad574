//! The description of a model that `GET /v7/$metadata` returns: OData's CSDL 4.01 as XML.
//!
//! A link to one row is only a navigation property, since in CSDL a name can denote only one thing: as a value, in a
//! filter or a body, it is the number of that row. Fields that nobody can read are left out.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::field::{Field, OnDelete, Type, Writer};
use crate::model::Model;
use crate::resource::{Navigation, Resource, Step};
use crate::version::Version;

/// The prefix of the names of types.
const NAMESPACE: &str = "Fleet";

/// The vocabularies whose terms are used, with their aliases.
const VOCABULARIES: [(&str, &str); 2] = [
    ("Org.OData.Core.V1", "Core"),
    ("Org.OData.Validation.V1", "Validation"),
];

impl Version {
    /// Returns the description of the model, as the body of `$metadata` (`application/xml`).
    #[must_use]
    pub fn metadata(self) -> &'static str {
        static CURRENT: LazyLock<String> = LazyLock::new(|| described(Version::V7.model()));
        static SIXTH: LazyLock<String> = LazyLock::new(|| described(Version::V6.model()));
        static OLDER: LazyLock<String> = LazyLock::new(|| described(Version::V5.model()));
        match self {
            Version::V7 => &CURRENT,
            Version::V6 => &SIXTH,
            _ => &OLDER,
        }
    }
}

fn described(model: &Model) -> String {
    let mut xml = Xml::default();
    xml.text
        .push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let edmx = "http://docs.oasis-open.org/odata/ns/edmx";
    let edm = "http://docs.oasis-open.org/odata/ns/edm";
    xml.within(
        "edmx:Edmx",
        &[("xmlns:edmx", edmx), ("Version", "4.01")],
        |xml| {
            for (namespace, alias) in VOCABULARIES {
                let uri = format!(
                    "https://oasis-tcs.github.io/odata-vocabularies/vocabularies/{namespace}.xml"
                );
                xml.within("edmx:Reference", &[("Uri", &uri)], |xml| {
                    xml.empty(
                        "edmx:Include",
                        &[("Namespace", namespace), ("Alias", alias)],
                    );
                });
            }
            xml.within("edmx:DataServices", &[], |xml| {
                xml.within(
                    "Schema",
                    &[("xmlns", edm), ("Namespace", NAMESPACE)],
                    |xml| {
                        for resource in model.resources() {
                            entity_type(xml, model, resource);
                        }
                        xml.within("EntityContainer", &[("Name", "Api")], |xml| {
                            for resource in model.resources() {
                                entity_set(xml, resource, resource.name);
                                for synonym in &resource.synonyms {
                                    entity_set(xml, resource, synonym);
                                }
                            }
                        });
                    },
                );
            });
        },
    );
    xml.text
}

fn entity_type(xml: &mut Xml, model: &Model, resource: &Resource) {
    xml.within("EntityType", &[("Name", resource.name)], |xml| {
        let keyed = resource.find_field("id").is_some_and(|id| !id.nullable);
        if keyed {
            xml.within("Key", &[], |xml| {
                xml.empty("PropertyRef", &[("Name", "id")])
            });
        }
        for field in resource.fields.iter().filter(|field| !field.secret) {
            property(xml, field);
        }
        for navigation in &resource.navigations {
            navigation_property(xml, model, resource, navigation);
        }
        describe(xml, resource.doc);
        alternate_keys(xml, resource);
    });
}

fn property(xml: &mut Xml, field: &Field) {
    let mut attributes = vec![("Name", field.name.to_owned())];
    let kind = match field.kind {
        Type::Integer | Type::BigInteger => "Edm.Int64",
        Type::Boolean => "Edm.Boolean",
        Type::Text { .. } | Type::Word(_) | Type::JsonText { .. } => "Edm.String",
        Type::Timestamp => "Edm.DateTimeOffset",
        Type::Json { .. } => "Edm.Untyped",
        Type::Link { .. } => return,
    };
    attributes.push(("Type", kind.to_owned()));
    match field.kind {
        Type::Text { max, .. } => attributes.push(("MaxLength", max.to_string())),
        Type::Timestamp => attributes.push(("Precision", "3".to_owned())),
        _ => {}
    }
    if !field.nullable {
        attributes.push(("Nullable", "false".to_owned()));
    }
    let attributes: Vec<(&str, &str)> = attributes.iter().map(|(k, v)| (*k, v.as_str())).collect();
    xml.within("Property", &attributes, |xml| {
        annotate(xml, field);
        if let Type::Word(words) = field.kind {
            xml.within(
                "Annotation",
                &[("Term", "Validation.AllowedValues")],
                |xml| {
                    xml.within("Collection", &[], |xml| {
                        for word in words {
                            xml.within("Record", &[], |xml| {
                                let value = [("Property", "Value"), ("String", word)];
                                xml.empty("PropertyValue", &value);
                            });
                        }
                    });
                },
            );
        }
    });
}

/// Adds the documentation of a field, and who writes it.
fn annotate(xml: &mut Xml, field: &Field) {
    describe(xml, field.doc);
    let term = match field.writer {
        Writer::Platform | Writer::Device => "Core.Computed",
        Writer::Creator => "Core.Immutable",
        Writer::Client | Writer::People | Writer::Provisioning | Writer::Input => return,
    };
    xml.empty("Annotation", &[("Term", term), ("Bool", "true")]);
}

fn describe(xml: &mut Xml, doc: &str) {
    if !doc.is_empty() {
        xml.empty(
            "Annotation",
            &[("Term", "Core.Description"), ("String", doc)],
        );
    }
}

fn navigation_property(xml: &mut Xml, model: &Model, resource: &Resource, navigation: &Navigation) {
    let target = format!("{NAMESPACE}.{}", navigation.to);
    let (field, kind) = match navigation.step {
        Step::One(field) => (resource.find_field(field), target),
        Step::Many(_) | Step::Through { .. } => (None, format!("Collection({target})")),
    };
    let mut attributes = vec![("Name", navigation.name), ("Type", &kind)];
    if field.is_some_and(|field| !field.nullable) {
        attributes.push(("Nullable", "false"));
    }
    xml.within("NavigationProperty", &attributes, |xml| {
        if let Some(field) = field {
            annotate(xml, field);
        }
        // What happens to the linked rows when this row is deleted.
        let action = match by(model, navigation).map(|field| field.kind) {
            Some(Type::Link {
                on_delete: OnDelete::Cascade,
                ..
            }) => "Cascade",
            Some(Type::Link {
                on_delete: OnDelete::SetNull,
                ..
            }) => "SetNull",
            _ => return,
        };
        xml.empty("OnDelete", &[("Action", action)]);
    });
}

/// Returns the field by which the other rows link to this one.
fn by<'a>(model: &'a Model, navigation: &Navigation) -> Option<&'a Field> {
    match navigation.step {
        Step::Many(field) => model.resource(navigation.to)?.find_field(field),
        Step::One(_) | Step::Through { .. } => None,
    }
}

fn alternate_keys(xml: &mut Xml, resource: &Resource) {
    let is_read = |name: &&str| resource.find_field(name).is_some_and(|field| !field.secret);
    let sets = resource.unique.iter();
    let sets: Vec<_> = sets.filter(|set| set.iter().all(is_read)).collect();
    if sets.is_empty() {
        return;
    }
    let is_link = |name: &str| {
        let field = resource.find_field(name);
        field.is_some_and(|field| matches!(field.kind, Type::Link { .. }))
    };
    xml.within("Annotation", &[("Term", "Core.AlternateKeys")], |xml| {
        xml.within("Collection", &[], |xml| {
            for set in sets {
                xml.within("Record", &[("Type", "Core.AlternateKey")], |xml| {
                    xml.within("PropertyValue", &[("Property", "Key")], |xml| {
                        xml.within("Collection", &[], |xml| {
                            for name in set {
                                let path = if is_link(name) {
                                    format!("{name}/id")
                                } else {
                                    (*name).to_owned()
                                };
                                xml.within("Record", &[("Type", "Core.PropertyRef")], |xml| {
                                    let of =
                                        [("Property", "Name"), ("PropertyPath", path.as_str())];
                                    xml.empty("PropertyValue", &of);
                                    let alias = [("Property", "Alias"), ("String", *name)];
                                    xml.empty("PropertyValue", &alias);
                                });
                            }
                        });
                    });
                });
            }
        });
    });
}

fn entity_set(xml: &mut Xml, resource: &Resource, name: &str) {
    let kind = format!("{NAMESPACE}.{}", resource.name);
    xml.within(
        "EntitySet",
        &[("Name", name), ("EntityType", &kind)],
        |xml| {
            for one in &resource.navigations {
                let binding = [("Path", one.name), ("Target", one.to)];
                xml.empty("NavigationPropertyBinding", &binding);
            }
        },
    );
}

/// Writes elements; those without content are closed immediately.
#[derive(Default)]
struct Xml {
    text: String,
    depth: usize,
}

// Writing to a string cannot fail.
impl Xml {
    fn within(&mut self, name: &str, attributes: &[(&str, &str)], content: impl FnOnce(&mut Xml)) {
        self.open(name, attributes);
        let begin = self.text.len();
        self.text.push_str(">\n");
        let inside = self.text.len();
        self.depth += 1;
        content(self);
        self.depth -= 1;
        if self.text.len() == inside {
            self.text.truncate(begin);
            self.text.push_str("/>\n");
        } else {
            self.indent();
            let _ = writeln!(self.text, "</{name}>");
        }
    }

    fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.open(name, attributes);
        self.text.push_str("/>\n");
    }

    fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.indent();
        let _ = write!(self.text, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.text, " {key}=\"");
            for one in value.chars() {
                match one {
                    '&' => self.text.push_str("&amp;"),
                    '<' => self.text.push_str("&lt;"),
                    '"' => self.text.push_str("&quot;"),
                    plain => self.text.push(plain),
                }
            }
            self.text.push('"');
        }
    }

    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n(' ', self.depth));
    }
}
