//! Settings of this cloud that clients and devices may read without a credential.

use axum::extract::{Request, State};
use cloud_core::answer::{Answer, ok};
use cloud_core::cloud::SharedCloud;
use cloud_core::credential::Identity;
use cloud_core::public_url::public_url;
use resources::{Branding, Check};
use serde_json::{Value, json};

/// `GET /config`
pub(crate) async fn config(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    cloud.auth.charge(&Identity::guest(), &parts)?;
    let url = public_url(&cloud, &parts.headers);
    let answer = json!({
        "deployment": null,
        "deploymentType": "self-hosted",
        "apiUrl": url,
        "adminUrl": url,
        "deviceUrlsBase": "",
        "gitServerUrl": "",
        "registry2Url": cloud.configuration.registry,
        "deltaUrl": null,
        "deviceTypes": [],
        "features": {},
        "ga": null,
        "mixpanelToken": null,
        "signupCodeRequired": false,
        "supportedSocialProviders": [],
    });
    Ok(ok(&answer))
}

/// `GET /config/vars?deviceType=`: the permitted names of variables. The lists are for user interfaces; the data API
/// has its own rules.
pub(crate) async fn variables(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    cloud.auth.charge(&Identity::guest(), &parts)?;
    let answer = rules(&cloud.configuration.branding);
    Ok(ok(&answer))
}

/// Settings of the supervisor that people change, with descriptions.
const SETTINGS: [(&str, &str, &str, &str); 6] = [
    (
        "HOST_CONFIG_gpu_mem",
        "integer",
        "16",
        "Memory of the graphics processor, in MB.",
    ),
    (
        "SUPERVISOR_POLL_INTERVAL",
        "integer",
        "600000",
        "How often the device asks for its target, in milliseconds.",
    ),
    (
        "SUPERVISOR_LOG_CONTROL",
        "boolean",
        "true",
        "Whether the device sends the logs of its services.",
    ),
    (
        "SUPERVISOR_VPN_CONTROL",
        "boolean",
        "true",
        "Whether the device keeps its tunnel to the cloud open.",
    ),
    (
        "SUPERVISOR_OVERRIDE_LOCK",
        "boolean",
        "false",
        "Whether updates override update locks.",
    ),
    (
        "SUPERVISOR_PERSISTENT_LOGGING",
        "boolean",
        "false",
        "Whether the journal outlives a reboot.",
    ),
];

/// Settings of a board that prevent it from starting.
const BLOCKED: [&str; 6] = [
    "arm_64bit",
    "bootcode",
    "initramfs",
    "kernel",
    "ramfsaddr",
    "ramfsfile",
];

fn rules(branding: &Branding) -> Value {
    let prefix = &branding.env_prefix;
    let name = |bare: &str| format!("{prefix}{bare}");
    let reserved: Vec<&str> = branding.reserved_variables().collect();
    let namespaces: Vec<&str> = branding.env_prefixes().collect();
    let properties: serde_json::Map<String, Value> = SETTINGS
        .iter()
        .map(|(bare, kind, default, description)| {
            let words = match *kind {
                "boolean" => json!({ "enum": ["true", "false"], "type": "string" }),
                _ => json!({ "pattern": "^[0-9]+$", "type": "string" }),
            };
            let mut answer = words;
            answer["default"] = json!(default);
            answer["description"] = json!(description);
            (name(bare), answer)
        })
        .collect();
    json!({
        "reservedNames": reserved,
        "reservedNamespaces": namespaces,
        "invalidRegex": pattern(Check::EnvironmentName),
        "configVarInvalidRegex": pattern(Check::ConfigName),
        "whiteListedNames": SETTINGS.iter().map(|(bare, ..)| name(bare)).collect::<Vec<_>>(),
        "whiteListedNamespaces": [name("HOST_CONFIG_"), name("HOST_ODMDATA"), name("HOST_EXTLINUX_")],
        "blackListedNames": BLOCKED.map(|bare| name(&format!("HOST_CONFIG_{bare}"))),
        "configVarSchema": {
            "type": "object",
            "$schema": "http://json-schema.org/draft-06/schema#",
            "properties": properties,
        },
    })
}

/// Returns a regular expression for clients.
fn pattern(check: Check) -> Option<String> {
    check.wrong_pattern().map(|pattern| format!("/{pattern}/"))
}

/// `GET /os/v1/config/`: the configuration of the host's own programs.
pub(crate) async fn get_host_configuration(
    State(cloud): State<SharedCloud>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    cloud.auth.charge(&Identity::guest(), &parts)?;
    // Devices open their tunnels themselves, and people's SSH keys are requested one by one.
    let answer = json!({
        "services": { "openvpn": { "config": "" }, "ssh": { "authorized_keys": "" } },
        "schema_version": "1.0.0",
    });
    Ok(ok(&answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_receive_the_rules_for_names_that_the_data_api_applies() {
        let rules = rules(&Branding::default());
        assert_eq!(rules["invalidRegex"], json!(r"/^\d|\W/"));
        let config = json!(r"/^\d|[^A-Za-z0-9_:]|^:/");
        assert_eq!(rules["configVarInvalidRegex"], config);
    }

    #[test]
    fn names_of_variables_are_those_of_the_vendor() {
        let branding = Branding {
            env_prefix: "ACME_".to_owned(),
            ..Branding::default()
        };
        let rules = rules(&branding);
        assert_eq!(rules["reservedNames"], json!(["ACME", "LEGACY", "USER"]));
        assert_eq!(rules["reservedNamespaces"], json!(["ACME_", "LEGACY_"]));
        assert!(
            rules["configVarSchema"]["properties"]["ACME_SUPERVISOR_POLL_INTERVAL"].is_object()
        );
    }
}
