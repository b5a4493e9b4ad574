//! The initial contents of a new database: kinds of processors, boards and fleets from a data file, roles of members,
//! an organization and its administrator.

use std::collections::BTreeMap;

use resources::{Type, v7};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::caller::SystemPurpose;
use crate::database::Database;
use crate::random;
use crate::record;
use crate::schema;
use crate::statement::sql;
use crate::write::{Environment, WriteError, WriteResult, Writer, row};

/// The catalogue included in this program.
pub const CATALOGUE: &str = include_str!("../catalogue.toml");

/// Kinds of processors, boards and fleets. See [`CATALOGUE`] for the format.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    #[serde(default, rename = "application_type")]
    application_types: Vec<Map<String, Value>>,
    #[serde(default, rename = "manufacturer")]
    manufacturers: Vec<Manufacturer>,
    #[serde(default, rename = "family")]
    families: Vec<Family>,
    #[serde(default, rename = "device_type")]
    device_types: Vec<DeviceType>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manufacturer {
    slug: String,
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    slug: String,
    name: String,
    manufacturer: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceType {
    slug: String,
    name: String,
    architecture: String,
    family: Option<String>,
    #[serde(default)]
    aliases: Vec<String>,
    logo: Option<String>,
}

/// A catalogue has an invalid format.
#[derive(Debug, thiserror::Error)]
#[error("the catalogue of device types cannot be read")]
pub struct CatalogueError(#[source] toml::de::Error);

/// The first organization and its administrator.
#[derive(Debug, Clone)]
pub struct FirstUser {
    /// The handle of the organization.
    pub organization: String,
    /// The administrator's name.
    pub username: String,
    /// The administrator's address, used to sign in.
    pub email: String,
    /// The hash of the password, in the form that the server checks.
    pub password_hash: String,
}

impl std::str::FromStr for Catalogue {
    type Err = CatalogueError;

    fn from_str(text: &str) -> Result<Self, CatalogueError> {
        toml::from_str(text).map_err(CatalogueError)
    }
}

impl Database {
    /// Adds the missing entries of a catalogue; existing ones stay unchanged. `now` is in milliseconds.
    ///
    /// # Errors
    /// [`WriteError`]; then nothing is added.
    pub async fn add_catalogue(
        &self,
        catalogue: &Catalogue,
        environment: &Environment,
        now: i64,
    ) -> WriteResult {
        let mut transaction = self.begin().await?;
        schema::alone(&mut transaction).await?;
        let mut writer = Writer::platform(SystemPurpose::Rules, &mut transaction, environment, now);
        catalogue.add(&mut writer).await?;
        Ok(transaction.commit().await?)
    }

    /// Creates the first organization and its administrator, if there is no user at all; returns the user's id if it
    /// was created. The catalogue must be added first.
    ///
    /// # Errors
    /// [`WriteError`]; then nothing is created.
    pub async fn first_user(
        &self,
        first: &FirstUser,
        environment: &Environment,
        now: i64,
    ) -> WriteResult<Option<i64>> {
        let mut transaction = self.begin().await?;
        schema::alone(&mut transaction).await?;
        let any = sql("SELECT id FROM \"user\" LIMIT 1");
        if transaction.id(&any).await?.is_some() {
            return Ok(None);
        }
        let mut writer = Writer::platform(SystemPurpose::Rules, &mut transaction, environment, now);
        let user = row(json!({
            "username": first.username, "email": first.email, "password": first.password_hash,
            "jwt_secret": random::digits()?, "is_cloud_administrator": true,
        }));
        let user = writer.create("user", &user).await?;
        let organization = row(json!({
            "name": first.organization, "handle": first.organization,
        }));
        let organization = writer.create("organization", &organization).await?;
        let roles = "organization_membership_role";
        let role = record::with_value(writer.transaction, roles, "name", "administrator").await?;
        let membership = row(json!({
            "user": user, "is_member_of__organization": organization,
            "organization_membership_role": role,
        }));
        writer
            .create("organization_membership", &membership)
            .await?;
        transaction.commit().await?;
        Ok(Some(user))
    }
}

impl Catalogue {
    async fn add(&self, writer: &mut Writer<'_>) -> WriteResult {
        for name in ["administrator", "member"] {
            let body = json!({ "name": name });
            ensure(writer, "organization_membership_role", "name", body).await?;
        }
        for name in ["developer", "operator", "observer"] {
            let body = json!({ "name": name });
            ensure(writer, "application_membership_role", "name", body).await?;
        }
        for application_type in &self.application_types {
            let body = Value::Object(application_type.clone());
            ensure(writer, "application_type", "slug", body).await?;
        }
        let mut architectures = BTreeMap::new();
        for slug in architecture_slugs() {
            let id = ensure(writer, "cpu_architecture", "slug", json!({ "slug": slug })).await?;
            architectures.insert(*slug, id);
        }
        let mut manufacturers = BTreeMap::new();
        for one in &self.manufacturers {
            let body = json!({ "slug": one.slug, "name": one.name });
            let id = ensure(writer, "device_manufacturer", "slug", body).await?;
            manufacturers.insert(one.slug.as_str(), id);
        }
        let mut families = BTreeMap::new();
        for one in &self.families {
            let manufacturer = named(&manufacturers, one.manufacturer.as_deref())?;
            let body = json!({
                "slug": one.slug, "name": one.name, "is_manufactured_by__device_manufacturer": manufacturer,
            });
            let id = ensure(writer, "device_family", "slug", body).await?;
            families.insert(one.slug.as_str(), id);
        }
        for one in &self.device_types {
            let architecture = named(&architectures, Some(&one.architecture))?;
            let family = named(&families, one.family.as_deref())?;
            let body = json!({
                "slug": one.slug, "name": one.name, "is_of__cpu_architecture": architecture,
                "belongs_to__device_family": family, "logo": one.logo,
            });
            let device_type = ensure(writer, "device_type", "slug", body).await?;
            for alias in std::iter::once(&one.slug).chain(&one.aliases) {
                let body = json!({ "device_type": device_type, "is_referenced_by__alias": alias });
                ensure(writer, "device_type_alias", "is_referenced_by__alias", body).await?;
            }
        }
        Ok(())
    }
}

/// Returns the id of the row with this value of a key; creates the row if there is none.
async fn ensure(
    writer: &mut Writer<'_>,
    resource: &str,
    key: &str,
    body: Value,
) -> WriteResult<i64> {
    let value = body.get(key).and_then(Value::as_str).unwrap_or_default();
    match record::with_value(writer.transaction, resource, key, value).await? {
        Some(id) => Ok(id),
        None => writer.create(resource, &row(body)).await,
    }
}

/// Returns the id of another entry of the catalogue.
fn named(ids: &BTreeMap<&str, i64>, name: Option<&str>) -> WriteResult<Option<i64>> {
    match name.map(|name| (ids.get(name), name)) {
        None => Ok(None),
        Some((Some(id), _)) => Ok(Some(*id)),
        Some((None, name)) => Err(WriteError::Refused(format!(
            "the catalogue has no `{name}`"
        ))),
    }
}

/// Returns all kinds of processors in the model.
fn architecture_slugs() -> &'static [&'static str] {
    let field = v7()
        .resource("cpu_architecture")
        .and_then(|resource| resource.find_field("slug"));
    match field.map(|field| field.kind) {
        Some(Type::Word(words)) => words,
        _ => &[],
    }
}
