//! Credentials for registries, as `docker login` stores them (`~/.docker/config.json`, or below DOCKER_CONFIG).
//! Credential helpers are not used.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// Returns the value of an `Authorization` header for a registry, or `None` if no credential is stored.
pub(crate) fn load(host: &str) -> Option<String> {
    let folder = match env::var_os("DOCKER_CONFIG") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME")?).join(".docker"),
    };
    let text = fs::read_to_string(folder.join("config.json")).ok()?;
    found(&serde_json::from_str(&text).ok()?, host)
}

fn found(kept: &Value, host: &str) -> Option<String> {
    let names: &[&str] = match host {
        "registry-1.docker.io" => &[
            "https://index.docker.io/v1/",
            "docker.io",
            "index.docker.io",
        ],
        _ => &[],
    };
    let auths = kept.get("auths")?;
    let entry = names.iter().chain([&host]).find_map(|name| {
        auths
            .get(name)
            .or_else(|| auths.get(format!("https://{name}")))
    })?;
    let auth = entry.get("auth")?.as_str()?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    (!auth.is_empty() && auth.bytes().all(is_base64)).then(|| format!("Basic {auth}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_of_docker_are_found_by_the_registrys_name() {
        let kept = json!({ "auths": {
            "r.io": { "auth": "YTpi" },
            "https://index.docker.io/v1/": { "auth": "Yzpk" },
            "empty.io": {}, "bad.io": { "auth": "a\nb" },
        } });
        for (host, expected) in [
            ("r.io", Some("Basic YTpi")),
            ("registry-1.docker.io", Some("Basic Yzpk")),
            ("empty.io", None),
            ("bad.io", None),
            ("other.io", None),
        ] {
            assert_eq!(found(&kept, host).as_deref(), expected, "{host}");
        }
    }
}
