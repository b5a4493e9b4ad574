//! The compose file, parsed and checked against what a release can contain.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::failure::{Failure, Result};

/// The maximum length of a compose file, in bytes; the cloud accepts a composition of a million.
const MOST: u64 = 1_000_000;
/// The maximum length of a service's name.
const LONGEST: usize = 63;

/// The contents of a compose file.
#[derive(Debug)]
pub(crate) struct Composition {
    /// The whole file, as the cloud stores it.
    pub(crate) value: Value,
    /// The services in the file's order.
    pub(super) services: Vec<Service>,
}

/// One service, and the current place of its image.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) name: String,
    pub(super) image: ImageSource,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ImageSource {
    /// In a registry, with this reference.
    Named(String),
    /// A WebAssembly component in a file.
    File(PathBuf),
}

impl Composition {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or cannot become a release.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let unreadable = |error: std::io::Error| {
            let failure = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    Failure::not_found(format!("there is no file {}", path.display()))
                }
                _ => Failure::unreadable(path, error),
            };
            failure.hint("give the path of a compose file, such as compose.yml")
        };
        let length = std::fs::metadata(path).map_err(unreadable)?.len();
        if length > MOST {
            return Err(Failure::usage(format!(
                "{} has more than {MOST} bytes",
                path.display()
            )));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder)
            .map_err(|failure| failure.within(format!("{} is not valid", path.display())))
    }

    fn parse(text: &str, folder: &Path) -> Result<Self> {
        // `no`, `on` and `n` are text here, as in other tools that read compose files.
        let options = serde_saphyr::options! { strict_booleans: true };
        let value: Value = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| Failure::usage("it is not valid YAML").because(error))?;
        let Some(top) = value.as_object() else {
            return Err(Failure::usage("it is not a mapping with `services`"));
        };
        for (name, instead) in [
            ("include", "copy what it includes into the file"),
            ("secrets", "set a variable with `fleet variable set`"),
            ("configs", "set a variable with `fleet variable set`"),
        ] {
            if top.contains_key(name) {
                let message = format!("`{name}` is not supported: devices do not have such files");
                return Err(Failure::usage(message).hint(instead));
            }
        }
        let services = top.get("services").and_then(Value::as_object);
        let services = services
            .filter(|services| !services.is_empty())
            .ok_or_else(|| Failure::usage("it has no `services`"))?;
        let mut placed = Vec::new();
        for (name, service) in services {
            let image = checked(name, service, top, services)
                .and_then(|image| located(image, folder))
                .map_err(|failure| failure.within(format!("the service `{name}`")))?;
            placed.push(Service {
                name: name.clone(),
                image,
            });
        }
        Ok(Composition {
            services: placed,
            value,
        })
    }
}

/// Returns the image of a service that can be part of a release.
fn checked<'a>(
    name: &str,
    service: &'a Value,
    top: &Map<String, Value>,
    services: &Map<String, Value>,
) -> Result<&'a str> {
    let fits = name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if !fits {
        return Err(
            Failure::usage("that is not a valid name of a service").hint(
                "use at most 63 letters, digits, `_`, `.` and `-`, with a letter or digit first",
            ),
        );
    }
    let Some(service) = service.as_object() else {
        return Err(Failure::usage("it is not a mapping with an `image`"));
    };
    for (key, instead) in [
        ("extends", "copy what it extends into the file"),
        ("env_file", "put its lines under `environment`"),
    ] {
        if service.contains_key(key) {
            return Err(
                Failure::usage(format!("`{key}` names a file, which devices do not have"))
                    .hint(instead),
            );
        }
    }
    for other in names(service.get("depends_on")) {
        if !services.contains_key(other) {
            return Err(Failure::usage(format!(
                "it depends on `{other}`, and there is no such service"
            )));
        }
    }
    let defined = |part: &str, name: &str| {
        top.get(part)
            .and_then(Value::as_object)
            .is_some_and(|all| all.contains_key(name))
    };
    for network in names(service.get("networks")) {
        if network != "default" && !defined("networks", network) {
            return Err(Failure::usage(format!(
                "it is in the network `{network}`, which is not under `networks`"
            )));
        }
    }
    for volume in named_volumes(service.get("volumes")) {
        if !defined("volumes", volume) {
            return Err(Failure::usage(format!(
                "it has the volume `{volume}`, which is not under `volumes`"
            )));
        }
    }
    match (service.get("image"), service.contains_key("build")) {
        (Some(Value::String(image)), _) if !image.is_empty() => Ok(image),
        (Some(_), _) => Err(Failure::usage("its `image` is not text")),
        (None, true) => Err(
            Failure::usage("it has no `image`, and `fleet` does not build images")
                .hint("build and push the image with another tool, and name it as `image`"),
        ),
        (None, false) => Err(Failure::usage("it has no `image`")),
    }
}

/// Returns where an image is: in a file next to the compose file, or in a registry.
fn located(image: &str, folder: &Path) -> Result<ImageSource> {
    let file = image.strip_prefix("file:");
    let path = file.unwrap_or(image);
    let is_path = path.starts_with("./") || path.starts_with("../") || path.starts_with('/');
    match file.is_some() || is_path {
        true => Ok(ImageSource::File(folder.join(path))),
        false if image.ends_with(".wasm") && !image.contains('/') => Err(Failure::usage(format!(
            "`{image}` names an image in a registry"
        ))
        .hint(format!(
            "a file beside the compose file is written `./{image}`"
        ))),
        false => Ok(ImageSource::Named(image.to_owned())),
    }
}

/// Returns the names in a list, or the keys of a mapping.
fn names(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        Some(Value::Object(map)) => map.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the volumes of a service that are not paths of the device.
fn named_volumes(value: Option<&Value>) -> Vec<&str> {
    let Some(list) = value.and_then(Value::as_array) else {
        return Vec::new();
    };
    list.iter()
        .filter_map(|volume| match volume {
            Value::String(text) => text.split_once(':').map(|(source, _)| source),
            Value::Object(long) => match long.get("type").and_then(Value::as_str) {
                Some("volume") => long.get("source").and_then(Value::as_str),
                _ => None,
            },
            _ => None,
        })
        .filter(|source| !source.starts_with(['/', '.', '~']))
        .collect()
}

#[cfg(test)]
mod fuzz_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Composition> {
        Composition::parse(text, Path::new("/srv"))
    }

    #[test]
    fn services_are_read_in_their_order_with_where_their_images_are() {
        let text = "
x-env: &env { A: '1', B: yes }
services:
  web:
    image: nginx:1.27
    environment: { <<: *env, C: 3 }
    depends_on: [main]
    volumes: ['data:/data', '/run:/run', { type: volume, source: data, target: /d }]
    networks: { back: { aliases: [w] } }
  main: { image: ./main.wasm }
  other: { image: 'file:/opt/o.wasm' }
volumes: { data: {} }
networks: { back: }
";
        let composition = parse(text).expect("a composition");
        let named = |name: &str, image| Service {
            name: name.to_owned(),
            image,
        };
        assert_eq!(
            composition.services,
            [
                named("web", ImageSource::Named("nginx:1.27".to_owned())),
                named("main", ImageSource::File("/srv/./main.wasm".into())),
                named("other", ImageSource::File("/opt/o.wasm".into())),
            ]
        );
        let environment = &composition.value["services"]["web"]["environment"];
        assert_eq!(environment["A"], "1");
        assert_eq!(environment["B"], "yes");
        assert_eq!(environment["C"], 3);
    }

    #[test]
    fn unusable_compose_files_are_reported_with_a_remedy() {
        for (text, expected) in [
            ("services: {", "not valid YAML"),
            ("- a", "not a mapping with `services`"),
            ("services: {}", "no `services`"),
            (
                "services: { a: { build: . } }",
                "`fleet` does not build images",
            ),
            ("services: { a: {} }", "no `image`"),
            ("services: { a: { image: 7 } }", "not text"),
            (
                "services: { 'a b': { image: x } }",
                "not a valid name of a service",
            ),
            (
                "services: { a: { image: x, depends_on: [b] } }",
                "depends on `b`",
            ),
            (
                "services: { a: { image: x, volumes: ['v:/v'] } }",
                "the volume `v`",
            ),
            (
                "services: { a: { image: x, networks: [n] } }",
                "the network `n`",
            ),
            (
                "services: { a: { image: x, env_file: .env } }",
                "`env_file` names a file",
            ),
            (
                "services: { a: { image: x } }\ninclude: [b.yml]",
                "`include` is not supported",
            ),
            ("services: { a: { image: main.wasm } }", "in a registry"),
        ] {
            let failure = parse(text).expect_err(text);
            let causes = [vec![failure.to_string()], failure.causes()]
                .concat()
                .join("; ");
            assert!(causes.contains(expected), "{text}: {causes}");
        }
    }
}
