//! The description at `$metadata`.

use std::collections::{BTreeMap, BTreeSet};
use strum::VariantArray;

use resources::{Step, Version, v7};
use roxmltree::{Document, Node};

fn elements<'a>(node: Node<'a, 'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.descendants()
        .filter(move |it| it.has_tag_name(("http://docs.oasis-open.org/odata/ns/edm", name)))
}

fn attribute_value<'a>(node: Node<'a, 'a>, attribute: &str) -> &'a str {
    node.attribute(attribute).expect(attribute)
}

#[test]
fn it_has_every_resource_field_and_link_of_its_version_and_no_secret() {
    for version in Version::VARIANTS {
        let document = Document::parse(version.metadata()).expect("XML");
        let root = document.root();
        let types: BTreeMap<&str, Node<'_, '_>> = elements(root, "EntityType")
            .map(|it| (attribute_value(it, "Name"), it))
            .collect();
        let model = version.model();
        assert_eq!(types.len(), model.resources().len());
        for resource in model.resources() {
            let of = types.get(resource.name).expect(resource.name);
            let links = resource.navigations.iter().map(|it| it.name);
            let links: BTreeSet<&str> = links.collect();
            let fields = resource
                .fields
                .iter()
                .filter(|it| !it.secret)
                .map(|it| it.name);
            let fields: BTreeSet<&str> = fields.filter(|name| !links.contains(name)).collect();
            let named = |name| {
                elements(*of, name)
                    .map(|it| attribute_value(it, "Name"))
                    .collect::<BTreeSet<_>>()
            };
            assert_eq!(named("Property"), fields, "{version:?} {}", resource.name);
            assert_eq!(
                named("NavigationProperty"),
                links,
                "{version:?} {}",
                resource.name
            );
        }
    }
}

#[test]
fn the_metadata_defines_all_names_that_it_uses() {
    for version in Version::VARIANTS {
        let document = Document::parse(version.metadata()).expect("XML");
        let root = document.root();
        let types: BTreeSet<String> = elements(root, "EntityType")
            .map(|it| format!("Fleet.{}", attribute_value(it, "Name")))
            .collect();
        let sets: BTreeSet<&str> = elements(root, "EntitySet")
            .map(|it| attribute_value(it, "Name"))
            .collect();
        for navigation in elements(root, "NavigationProperty") {
            let kind = attribute_value(navigation, "Type");
            let inner = kind
                .strip_prefix("Collection(")
                .and_then(|it| it.strip_suffix(')'));
            assert!(types.contains(inner.unwrap_or(kind)), "{kind}");
        }
        for set in elements(root, "EntitySet") {
            assert!(types.contains(attribute_value(set, "EntityType")));
            for binding in elements(set, "NavigationPropertyBinding") {
                assert!(sets.contains(attribute_value(binding, "Target")));
            }
        }
        for resource in version.model().resources() {
            for synonym in &resource.synonyms {
                assert!(sets.contains(synonym), "{synonym}");
            }
        }
    }
}

#[test]
fn a_field_is_described_with_its_type_its_limits_and_who_writes_it() {
    let document = Document::parse(Version::V7.metadata()).expect("XML");
    let of = |resource: &str, kind, name: &str| {
        let mut types = elements(document.root(), "EntityType");
        let resource = types
            .find(|it| attribute_value(*it, "Name") == resource)
            .expect("it");
        let mut fields = elements(resource, kind);
        let field = fields
            .find(|it| attribute_value(*it, "Name") == name)
            .expect(name);
        document.input_text()[field.range()].to_owned()
    };
    assert_eq!(
        of("device_tag", "Property", "tag_key"),
        r#"<Property Name="tag_key" Type="Edm.String" MaxLength="100" Nullable="false"/>"#
    );
    assert_eq!(
        of("device_tag", "NavigationProperty", "device"),
        r#"<NavigationProperty Name="device" Type="Fleet.device" Nullable="false"/>"#
    );
    let lines = |text: String| {
        text.lines()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        lines(of("application", "NavigationProperty", "owns__device")),
        [
            r#"<NavigationProperty Name="owns__device" Type="Collection(Fleet.device)">"#,
            r#"<OnDelete Action="Cascade"/>"#,
            "</NavigationProperty>",
        ]
    );
    assert_eq!(
        lines(of("device", "Property", "os_variant")),
        [
            r#"<Property Name="os_variant" Type="Edm.String">"#,
            r#"<Annotation Term="Core.Computed" Bool="true"/>"#,
            r#"<Annotation Term="Validation.AllowedValues">"#,
            "<Collection>",
            "<Record>",
            r#"<PropertyValue Property="Value" String="prod"/>"#,
            "</Record>",
            "<Record>",
            r#"<PropertyValue Property="Value" String="dev"/>"#,
            "</Record>",
            "</Collection>",
            "</Annotation>",
            "</Property>",
        ]
    );
    let tag = v7().resource("device_tag").expect("it");
    assert!(
        tag.navigations
            .iter()
            .all(|it| matches!(it.step, Step::One(_)))
    );
}
