//! The statement that an owner signs: everything in a release that determines what its devices run, and the names of
//! what the cloud may set in addition.

use std::collections::{BTreeMap, BTreeSet};

use model::{AppClass, TargetApp, TargetRelease, TargetService};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Digest;

/// The format name in a statement. Another format has another name, and is refused by devices that do not know it.
pub const FORMAT: &str = "signed-target/1";

/// The setting that every target has: how often the device polls. It opens no access.
pub const ALWAYS_OPEN: &str = "SUPERVISOR_POLL_INTERVAL";

/// The signed content, as JSON. An unknown field could be a condition, so it makes the statement unreadable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// [`FORMAT`].
    pub format: String,
    /// The app that the release belongs to.
    pub app: SignedApp,
    /// The release.
    pub release: SignedRelease,
    /// The time of the signing, in milliseconds since the epoch: a higher version is a later one.
    pub version: u64,
    /// The time, in milliseconds since the epoch, from which a device that has not yet accepted the statement no
    /// longer does.
    pub expires_ms: Option<u64>,
    /// All services of the release, by name.
    pub services: BTreeMap<String, SignedService>,
    /// The definitions of all volumes, by name.
    pub volumes: BTreeMap<String, Digest>,
    /// The definitions of all networks, by name.
    pub networks: BTreeMap<String, Digest>,
    /// Settings of the device that a target must have, with these values.
    pub settings: BTreeMap<String, String>,
    /// Settings that the cloud may leave out or give any value.
    pub open_settings: BTreeSet<String>,
}

/// The app of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedApp {
    /// Its uuid.
    pub uuid: String,
    /// Its number, which is part of the names of volumes.
    pub id: u64,
    /// `fleet`, `app` or `block`.
    pub class: String,
}

/// A release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedRelease {
    /// Its commit.
    pub commit: String,
    /// Its number.
    pub id: u64,
}

/// A service of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedService {
    /// Its number.
    pub id: u64,
    /// The number of its image.
    pub image_id: u64,
    /// Its image, by digest.
    pub image: String,
    /// Its labels, all of them.
    pub labels: BTreeMap<String, String>,
    /// The digest of its contract, if it has one.
    pub contract: Option<Digest>,
    /// The digests of its compose fields, by name.
    pub compose: BTreeMap<String, Digest>,
    /// Variables that the cloud may set to any value.
    pub variables: BTreeSet<String>,
}

/// What the cloud may set in addition to what is signed, and until when the statement can be accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowances {
    /// See [`Statement::version`].
    pub version: u64,
    /// See [`Statement::expires_ms`].
    pub expires_ms: Option<u64>,
    /// Variables by the name of the service; those under `None` are for all services.
    pub variables: BTreeMap<Option<String>, BTreeSet<String>>,
    /// Settings whose values the cloud chooses.
    pub open_settings: BTreeSet<String>,
}

/// The reason why a statement's text cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// It is not a statement.
    #[error("the signed statement cannot be read: {0}")]
    Parse(#[from] serde_json::Error),
    /// It has another format.
    #[error("the signed statement has the format `{0}`, which this program does not know")]
    Format(String),
}

/// The reason why nothing was signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    /// There is nothing to sign.
    #[error("the app has no release in the target")]
    NoRelease,
    /// An image by tag: nobody knows what the tag will refer to.
    #[error(
        "the image of the service `{service}` is `{image}`, which has no digest, so the registry decides what it contains"
    )]
    NoDigest {
        /// The service.
        service: String,
        /// Its image.
        image: String,
    },
    /// The cloud would set a variable that a device refuses.
    #[error(
        "the cloud sets the variable `{variable}` of the service `{service}`, which nothing allows"
    )]
    Variable {
        /// The service.
        service: String,
        /// The variable.
        variable: String,
    },
}

impl Statement {
    /// Creates the statement to sign for an app of a target, with the settings of that target.
    ///
    /// # Errors
    /// [`SigningError`], for all reasons.
    pub fn from_app(
        app: &TargetApp,
        config: &BTreeMap<String, String>,
        allowances: &Allowances,
    ) -> Result<Statement, Vec<SigningError>> {
        let release = app.release.as_ref();
        let release = release.ok_or_else(|| vec![SigningError::NoRelease])?;
        let mut reasons = Vec::new();
        let mut services = BTreeMap::new();
        for (name, service) in &release.services {
            let signed = signed_service(service, allowances);
            if !is_by_digest(&signed.image) {
                reasons.push(SigningError::NoDigest {
                    service: name.to_string(),
                    image: signed.image.clone(),
                });
            }
            let set = service.environment.keys();
            let refused = set.filter(|variable| !signed.variables.contains(*variable));
            reasons.extend(refused.map(|variable| SigningError::Variable {
                service: name.to_string(),
                variable: variable.clone(),
            }));
            services.insert(name.to_string(), signed);
        }
        if !reasons.is_empty() {
            return Err(reasons);
        }
        let open = &allowances.open_settings;
        let is_fixed = |name: &String| name != ALWAYS_OPEN && !open.contains(name);
        let settings = config.iter().filter(|(name, _)| is_fixed(name));
        Ok(Statement {
            format: FORMAT.to_owned(),
            app: signed_app(app),
            release: signed_release(release),
            version: allowances.version,
            expires_ms: allowances.expires_ms,
            services,
            volumes: digests(&release.volumes),
            networks: digests(&release.networks),
            settings: settings.map(|(n, v)| (n.clone(), v.clone())).collect(),
            open_settings: open.clone(),
        })
    }

    /// Reads the signed text of a statement.
    ///
    /// # Errors
    /// [`StatementError`]
    pub fn parse(text: &str) -> Result<Statement, StatementError> {
        let statement: Statement = serde_json::from_str(text)?;
        if statement.format != FORMAT {
            return Err(StatementError::Format(statement.format));
        }
        Ok(statement)
    }

    /// Writes the text to sign. People read it, too, so it has a line for each field.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }
}

pub(crate) fn signed_app(app: &TargetApp) -> SignedApp {
    SignedApp {
        uuid: app.uuid.to_string(),
        id: app.id.0,
        class: class(app.class).to_owned(),
    }
}

pub(crate) fn signed_release(release: &TargetRelease) -> SignedRelease {
    SignedRelease {
        commit: release.commit.to_string(),
        id: release.id.0,
    }
}

fn signed_service(service: &TargetService, allowances: &Allowances) -> SignedService {
    let of_service = |name| allowances.variables.get(&name).into_iter().flatten();
    let variables = of_service(None).chain(of_service(Some(service.name.to_string())));
    SignedService {
        id: service.id.0,
        image_id: service.image_id.0,
        image: service.image.to_string(),
        labels: service.labels.clone(),
        contract: contract(service),
        compose: compose(service),
        variables: variables.cloned().collect(),
    }
}

pub(crate) fn contract(service: &TargetService) -> Option<Digest> {
    let contract = service.contract.as_ref();
    contract
        .filter(|value| !value.is_null())
        .map(Digest::hash_json)
}

pub(crate) fn compose(service: &TargetService) -> BTreeMap<String, Digest> {
    let fields = service.composition.iter();
    fields
        .map(|(name, value)| (name.clone(), Digest::hash_json(value)))
        .collect()
}

pub(crate) fn digests(
    definitions: &BTreeMap<String, serde_json::Map<String, Value>>,
) -> BTreeMap<String, Digest> {
    let digest = |fields: &serde_json::Map<_, _>| Digest::hash_json(&Value::Object(fields.clone()));
    definitions
        .iter()
        .map(|(name, fields)| (name.clone(), digest(fields)))
        .collect()
}

fn class(class: AppClass) -> &'static str {
    match class {
        AppClass::Fleet => "fleet",
        AppClass::App => "app",
        AppClass::Block => "block",
    }
}

/// Returns whether an image's reference itself determines the image.
fn is_by_digest(image: &str) -> bool {
    let digest = image.split_once("@sha256:").map(|(_, digest)| digest);
    digest.is_some_and(|digest| {
        digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
