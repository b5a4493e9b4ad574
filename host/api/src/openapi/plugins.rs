//! The routes of plugins in the description: with the plugin's own data, which is checked like all data from plugins,
//! or with the little that the host knows.

use http::Method;
use serde_json::{Map, Value, json};

use super::{SCHEMAS, operation_id, path_parameters, put, template};
use device_types::PluginRoutes;

/// The parts of an operation that a plugin may describe; the host describes the rest.
const DETAILS: [&str; 6] = [
    "summary",
    "description",
    "deprecated",
    "parameters",
    "requestBody",
    "responses",
];

/// The host's answers in place of a plugin that does not answer.
const FAILURES: [(&str, &str); 8] = [
    ("400", "the request's body is incomplete"),
    (
        "403",
        "`Host` is neither an address nor a name of this device, or `Origin` is another site",
    ),
    (
        "413",
        "the request's body is larger than the plugin accepts",
    ),
    (
        "415",
        "the request's body is compressed, or not in UTF-8, and the plugin reads it",
    ),
    ("500", "the plugin failed"),
    ("502", "the plugin gave a bad answer"),
    (
        "503",
        "the plugin has too many calls at a time, or is being loaded",
    ),
    ("504", "the plugin took too long"),
];

/// Adds a plugin's routes, and the schemas that they refer to under the plugin's name.
pub(super) fn add(
    plugin: PluginRoutes,
    failed: &Value,
    paths: &mut Map<String, Value>,
    schemas: &mut Map<String, Value>,
) {
    let PluginRoutes {
        plugin,
        routes,
        description,
    } = plugin;
    let mut description = description.unwrap_or_default();
    let own = object(take_at(&mut description, &["components", "schemas"]));
    let named = PluginSchemas {
        plugin: &plugin,
        own: &own,
    };
    for (method, pattern) in &routes {
        let name = method.as_str().to_ascii_lowercase();
        let details = take_at(&mut description, &["paths", &template(pattern), &name]);
        let operation = operation(&named, method, pattern, details, failed);
        put(paths, pattern, method, operation);
    }
    for (name, schema) in own.clone() {
        if schema.is_object() {
            schemas.insert(named.full(&name), named.rename(schema));
        }
    }
}

fn operation(
    named: &PluginSchemas<'_>,
    method: &Method,
    pattern: &str,
    details: Value,
    failed: &Value,
) -> Value {
    let mut operation = Map::new();
    operation.insert("operationId".into(), operation_id(method, pattern).into());
    operation.insert("tags".into(), json!([named.plugin]));
    let parameters: Vec<Value> = path_parameters(pattern).collect();
    if !parameters.is_empty() {
        operation.insert("parameters".into(), parameters.into());
    }
    let mut details = object(details);
    for key in DETAILS {
        if let Some(value) = details.remove(key) {
            operation.insert(key.into(), named.rename(value));
        }
    }
    operation
        .entry("summary")
        .or_insert_with(|| format!("answered by plugin `{}`", named.plugin).into());
    let mut responses = match operation.remove("responses") {
        Some(Value::Object(responses)) => responses,
        _ => Map::from_iter([(
            "default".to_owned(),
            json!({ "description": "the plugin does not describe its answers" }),
        )]),
    };
    add_failures(&mut responses, failed);
    responses.sort_keys();
    operation.insert("responses".into(), responses.into());
    operation.into()
}

/// Removes and returns the value at `path`; returns null if there is none, whatever is on the way.
fn take_at(value: &mut Value, path: &[&str]) -> Value {
    let mut at = value;
    for name in path {
        match at.get_mut(name) {
            Some(inner) => at = inner,
            None => return Value::Null,
        }
    }
    at.take()
}

/// Returns the value if it is an object, else an empty one.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Adds the host's own answers: to a request without a key, and in place of a plugin that fails.
fn add_failures(responses: &mut Map<String, Value>, failed: &Value) {
    let unauthorized = ("401", "the key is missing or unknown");
    for (status, about) in FAILURES.into_iter().chain([unauthorized]) {
        let (media, schema) = match status {
            "401" => ("text/plain; charset=utf-8", json!({ "type": "string" })),
            _ => ("application/json; charset=utf-8", failed.clone()),
        };
        let mut response = object(responses.remove(status).unwrap_or_default());
        response.entry("description").or_insert(about.into());
        let mut content = object(response.remove("content").unwrap_or_default());
        let mut written = object(content.remove(media).unwrap_or_default());
        let schema = match written.remove("schema") {
            None => schema,
            Some(own) if own == schema => own,
            Some(own) => json!({ "anyOf": [own, schema] }),
        };
        written.insert("schema".into(), schema);
        content.insert(media.into(), written.into());
        response.insert("content".into(), content.into());
        responses.insert(status.into(), response.into());
    }
}

/// The schemas of one plugin, whose names have the plugin's name as a prefix in the document.
struct PluginSchemas<'a> {
    plugin: &'a str,
    own: &'a Map<String, Value>,
}

impl PluginSchemas<'_> {
    fn full(&self, name: &str) -> String {
        format!("{}.{name}", self.plugin)
    }

    /// Returns the value with its references renamed. A reference to anything but a schema of the plugin's own becomes
    /// empty.
    fn rename(&self, value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let renamed = fields.into_iter().filter_map(|(key, value)| {
                    if key == "$ref" {
                        let name = value.as_str()?.strip_prefix(SCHEMAS)?;
                        let full = format!("{SCHEMAS}{}", self.full(name));
                        return self.own.contains_key(name).then(|| (key, full.into()));
                    }
                    Some((key, self.rename(value)))
                });
                renamed.collect::<Map<_, _>>().into()
            }
            Value::Array(items) => items.into_iter().map(|item| self.rename(item)).collect(),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(description: Option<Value>) -> (Map<String, Value>, Map<String, Value>) {
        let (mut paths, mut schemas) = (Map::new(), Map::new());
        let plugin = PluginRoutes {
            plugin: "greeter".to_owned(),
            routes: vec![(Method::GET, "/v3/hello/:name".to_owned())],
            description,
        };
        let failed = json!({ "$ref": "#/components/schemas/Failed" });
        add(plugin, &failed, &mut paths, &mut schemas);
        (paths, schemas)
    }

    #[test]
    fn a_plugin_describes_its_own_routes_under_its_own_name() {
        let (paths, schemas) = described(Some(json!({
            "paths": {
                "/v3/hello/{name}": { "get": {
                    "summary": "greets",
                    "security": [],
                    "responses": { "200": {
                        "description": "the greeting",
                        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Hello" } } }
                    } }
                }, "post": { "summary": "not its route" } },
                "/v1/reboot": { "post": { "summary": "not its route either" } }
            },
            "components": { "schemas": {
                "Hello": { "properties": { "to": { "$ref": "#/components/schemas/Name" } } },
                "Name": { "type": "string" },
                "Odd": { "$ref": "https://elsewhere.example/schema" }
            } }
        })));
        let get = &paths["/v3/hello/{name}"]["get"];
        assert_eq!(get["summary"], "greets");
        assert!(
            get["security"].is_null(),
            "whether a key is needed is the host's to say"
        );
        assert_eq!(get["parameters"][0]["name"], "name");
        let answer = &get["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(answer, "#/components/schemas/greeter.Hello");
        assert_eq!(
            get["responses"]["504"]["description"],
            "the plugin took too long"
        );
        let to = &schemas["greeter.Hello"]["properties"]["to"]["$ref"];
        assert_eq!(to, "#/components/schemas/greeter.Name");
        assert_eq!(schemas["greeter.Odd"], json!({}));
        assert_eq!(paths.len(), 1);
        assert!(paths["/v3/hello/{name}"]["post"].is_null());
    }

    #[test]
    fn a_plugin_that_says_nothing_or_nonsense_is_listed_with_what_the_host_knows() {
        let nonsense = [
            json!(null),
            json!({ "paths": [] }),
            json!({ "paths": { "/v3/hello/{name}": { "get": 5 } }, "components": 7 }),
            json!({ "paths": { "/v3/hello/{name}": { "get": { "responses": { "400": 1, "401": [] } } } } }),
        ];
        for description in [None].into_iter().chain(nonsense.map(Some)) {
            let (paths, schemas) = described(description);
            let get = &paths["/v3/hello/{name}"]["get"];
            assert_eq!(get["operationId"], "getV3HelloName");
            assert!(get["responses"]["500"].is_object());
            assert!(schemas.is_empty());
        }
    }
}
