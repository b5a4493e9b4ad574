//! The OpenAPI 3.1 description of the API, generated from the routes: those of the core with their declarations in
//! [`crate::operation`], those of plugins with each plugin's own description.
//!
//! A plugin describes only its own routes: anything else in its description is left out.

pub(crate) mod description;
mod plugins;

use std::collections::BTreeMap;

use device_types::PluginRoutes;
use http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::answer::FailureBody;
use crate::operation::{Answer, Content, RequestBody, SchemaOf, schema};
use crate::route::Route;
use crate::routes;

/// The location of schemas in the document.
const SCHEMAS: &str = "#/components/schemas/";

/// Returns the document for an API at `level`.
pub(crate) fn describe(level: &str, plugins: Vec<PluginRoutes>) -> Value {
    let mut generator = generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::core_routes() {
        let operation = core_operation(route, &mut generator);
        put(&mut paths, route.path, &route.method, operation);
    }
    let failed = schema_of(&mut generator, schema::<FailureBody>);
    let mut schemas = generator.take_definitions(true);
    for plugin in plugins {
        plugins::add(plugin, &failed, &mut paths, &mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Device supervisor",
            "version": level,
            "description": "The API of a device's supervisor, for the services on the device and for other clients. The version is the API level, by which clients detect features."
        },
        "servers": [{ "url": "/" }],
        "security": [{ "query": [] }, { "header": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "query": {
                    "type": "apiKey",
                    "in": "query",
                    "name": "apikey",
                    "description": "the key of the device or of a service; it takes precedence over one in the header"
                },
                "header": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "the same key; the scheme may also be called `ApiKey`"
                }
            }
        }
    })
}

fn generator() -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.into_generator()
}

/// Adds an operation at its path; `pattern` is in the form of routes.
fn put(paths: &mut Map<String, Value>, pattern: &str, method: &Method, operation: Value) {
    let path = paths
        .entry(template(pattern))
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(path) = path {
        path.insert(method.as_str().to_ascii_lowercase(), operation);
    }
}

/// Returns `/v1/apps/:appId` as `/v1/apps/{appId}`.
fn template(pattern: &str) -> String {
    let segments = pattern.split('/').map(|segment| {
        segment
            .strip_prefix(':')
            .map_or_else(|| segment.to_owned(), |name| format!("{{{name}}}"))
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Returns the parameters in the path.
fn path_parameters(pattern: &str) -> impl Iterator<Item = Value> {
    let names = pattern.split('/').filter_map(|part| part.strip_prefix(':'));
    names.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    })
}

/// Returns a unique name for a method and a path.
fn operation_id(method: &Method, pattern: &str) -> String {
    let mut id = method.as_str().to_ascii_lowercase();
    for word in pattern.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut letters = word.chars();
        id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        id.push_str(letters.as_str());
    }
    id
}

fn core_operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = path_parameters(route.path).collect();
    parameters.extend(route.query.iter().map(query_parameter));
    let mut operation = json!({
        "operationId": operation_id(&route.method, route.path),
        "summary": route.summary,
        "tags": ["core"],
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if route.is_open {
        operation["security"] = json!([]);
    }
    if let Some(body) = request_body(route.body, generator) {
        operation["requestBody"] = body;
    }
    operation["responses"] = responses(route, generator);
    operation
}

fn query_parameter((name, about): &(&str, &str)) -> Value {
    json!({
        "name": name,
        "in": "query",
        "required": false,
        "description": about,
        "schema": { "type": "string" },
    })
}

fn request_body(body: RequestBody, generator: &mut SchemaGenerator) -> Option<Value> {
    let (schema, required) = match body {
        RequestBody::Ignored => return None,
        RequestBody::Component => {
            return Some(json!({
                "required": true,
                "content": { "application/wasm": { "schema": {} } },
            }));
        }
        RequestBody::Document(schema) => (schema_of(generator, schema), true),
        RequestBody::Action(schema) => {
            // An optional field is always present after reading: the schema describes what is sent.
            let settings = SchemaSettings::draft2020_12().for_deserialize();
            let mut schema = schema_of(&mut settings.into_generator(), schema);
            leave_out_rust(&mut schema);
            let required = schema.get("required").is_some();
            (schema, required)
        }
    };
    let media = json!({ "schema": schema });
    Some(json!({
        "required": required,
        "content": { "application/json": media, "application/x-www-form-urlencoded": media },
    }))
}

/// Returns the declared answers of the route, and those that all routes have.
fn responses(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut answers = route.answers.clone();
    let mut add = |status, about| answers.push(Answer::failed(status, about));
    if !matches!(route.body, RequestBody::Ignored) {
        add(400, "the body is malformed");
        add(408, "the body does not arrive");
        add(413, "the body is too large");
        add(
            415,
            match route.body {
                RequestBody::Component => "the body is compressed",
                _ => "the body is compressed, or not in UTF-8",
            },
        );
    }
    add(
        403,
        "`Host` is neither an address nor a name of this device, or `Origin` is another site",
    );
    add(
        500,
        "the supervisor failed to answer this request; its log says why",
    );
    if !route.is_open {
        add(503, "it failed temporarily");
        answers.push(Answer::text(401, "the key is missing or unknown"));
    }
    let mut by_status: BTreeMap<String, Value> = BTreeMap::new();
    for answer in answers {
        add_answer(&mut by_status, answer, generator);
    }
    by_status.into_iter().collect()
}

/// Merges two answers with one status into one, with both descriptions and both types.
fn add_answer(
    by_status: &mut BTreeMap<String, Value>,
    answer: Answer,
    generator: &mut SchemaGenerator,
) {
    let (media, schema) = match answer.content {
        Content::Nothing => (None, Value::Null),
        Content::Text => (
            Some("text/plain; charset=utf-8"),
            json!({ "type": "string" }),
        ),
        Content::Json(schema) => (
            Some("application/json; charset=utf-8"),
            schema_of(generator, schema),
        ),
        Content::Events(schema) => (
            Some("text/event-stream; charset=utf-8"),
            schema_of(generator, schema),
        ),
        Content::Page(media) => (Some(media), json!({ "type": "string" })),
        Content::Lines(schema) => (
            Some("application/x-ndjson; charset=utf-8"),
            schema_of(generator, schema),
        ),
    };
    let response = by_status
        .entry(answer.status.to_string())
        .or_insert_with(|| json!({ "description": "" }));
    let description = match response["description"].as_str() {
        None | Some("") => answer.about.to_owned(),
        Some(other) if other.split("; or ").any(|about| about == answer.about) => other.to_owned(),
        Some(other) => format!("{other}; or {}", answer.about),
    };
    response["description"] = description.into();
    let Some(media) = media else { return };
    let content = &mut response["content"][media];
    let schemas = match content["schema"].take() {
        Value::Null => schema,
        first if first == schema => schema,
        first => json!({ "anyOf": [first, schema] }),
    };
    content["schema"] = schemas;
}

/// Removes from a body's schema whatever concerns the Rust type: its own description, and `null` for fields that were
/// not sent.
fn leave_out_rust(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    schema.remove("description");
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.remove("default");
        }
    }
}

fn schema_of(generator: &mut SchemaGenerator, schema: SchemaOf) -> Value {
    schema(generator).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_route_is_an_operation_with_answers_of_its_own() {
        let document = describe("19.0.0", Vec::new());
        for route in routes::core_routes() {
            let path = &document["paths"][template(route.path)];
            let operation = &path[route.method.as_str().to_ascii_lowercase()];
            let named = format!("{} {}", route.method, route.path);
            let responses = operation["responses"].as_object().expect(&named);
            assert!(
                responses.keys().any(|status| status.starts_with('2')),
                "{named} never succeeds"
            );
            let asks = !route.is_open;
            assert_eq!(responses.contains_key("401"), asks, "{named}");
            assert!(responses.contains_key("403"), "{named}");
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema_and_every_operation_has_its_own_name() {
        let document = describe("19.0.0", Vec::new());
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"").skip(1) {
            let (reference, _) = reference.split_once('"').unwrap();
            let name = reference.strip_prefix(SCHEMAS).expect(reference);
            assert!(
                document["components"]["schemas"][name].is_object(),
                "{name}"
            );
        }
        let mut ids = std::collections::BTreeSet::new();
        for operation in document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|path| path.as_object().unwrap().values())
        {
            assert!(ids.insert(operation["operationId"].as_str().unwrap()));
        }
    }

    #[test]
    fn schemas_have_names_of_their_own() {
        let document = describe("19.0.0", Vec::new());
        for name in document["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
        {
            assert!(
                !name.ends_with(|c: char| c.is_ascii_digit()),
                "two types are called `{name}`: rename one for the description"
            );
        }
    }
}
