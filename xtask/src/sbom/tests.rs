use super::*;

/// Returns the document of the layout.
fn written() -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path()).expect("the list");
    let file = fs::read_to_string(folder.path().join(FILE)).expect("the file");
    serde_json::from_str(&file).expect("JSON")
}

#[test]
fn the_list_is_what_cyclonedx_says_and_names_every_program_and_what_is_in_it() {
    let document = written();
    let schema = include_str!("bom-1.5.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("the published schema");
    // We write licences as expressions and sign nothing, so nothing may appear where these two schemas are used.
    let mut registry = jsonschema::Registry::new();
    for beside in ["spdx.schema.json", "jsf-0.82.schema.json"] {
        let address = format!("http://cyclonedx.org/schema/{beside}");
        let nothing = json!({ "definitions": { "signature": false }, "not": {} });
        registry = registry.add(address, nothing).expect("a schema");
    }
    let registry = registry.prepare().expect("the schemas");
    let schema = jsonschema::options()
        .with_registry(&registry)
        .build(&schema);
    let wrong: Vec<String> = schema
        .expect("a schema")
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());

    let component = |name: &str| {
        let mut all = items(&document["components"]);
        all.find(|it| it["name"] == name)
            .unwrap_or(&Value::Null)
            .clone()
    };
    for program in PROGRAMS.into_iter().chain(["led-blink"]) {
        assert_eq!(component(program)["type"], "application", "{program}");
    }
    let tokio = component("tokio");
    assert_eq!(tokio["scope"], "required");
    assert!(
        text(&tokio["purl"]).starts_with("pkg:cargo/tokio@1."),
        "{tokio}"
    );
    assert_eq!(text(&tokio["hashes"][0]["content"]).len(), 64, "{tokio}");
    // A macro is used to build programs, and a test's crate not even that.
    assert_eq!(component("serde_derive")["scope"], "excluded");
    assert_eq!(component("proptest"), Value::Null);
    // Every dependency is in the list.
    let listed: BTreeSet<String> = items(&document["components"])
        .map(|it| text(&it["bom-ref"]))
        .collect();
    for needs in items(&document["dependencies"]) {
        for need in items(&needs["dependsOn"]) {
            assert!(listed.contains(&text(need)), "{need}");
        }
    }
}

#[test]
fn the_same_lock_file_gives_the_same_list() {
    assert_eq!(written(), written());
}
