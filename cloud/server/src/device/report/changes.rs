//! Finds the differences between a report and the stored data, and writes them.

mod installs;
mod plugin_rows;

use std::net::IpAddr;
use std::sync::LazyLock;

use cloud_core::answer::Refusal;
use cloud_core::clock::now;
use cloud_core::cloud::Cloud;
use cloud_core::device::DeviceRef;
use cloud_core::tunnels::device_request::supervisor_key;
use data::write::{WriteError, retried};
use data::{DataError, Keyring, SecretLocation, SystemPurpose, Transaction};
use sea_query::{Alias, Expr, ExprTrait, Query, SimpleExpr};
use serde_json::{Map, Value};

use super::apps::{Apps, ReportedApp};
use super::fields::{FIELDS, Field, FieldKind, Impact, ReportedFields};
use super::plugin_fields::PluginFields;
use crate::state::Server;
use installs::{Install, ReportRows};

/// The field that is encrypted in the database.
const SECRET: &str = "api_secret";

/// Selects a device by its uuid, with the uuid of its fleet; built once.
static SELECT: LazyLock<&str> = LazyLock::new(|| {
    let fields = FIELDS.iter().map(|field| format!("d.\"{}\"", field.name));
    let fields: Vec<String> = fields.collect();
    let select = format!(
        "SELECT d.id, d.actor, a.uuid, d.public_address, {} FROM device AS d \
         LEFT JOIN application AS a ON a.id = d.belongs_to__application WHERE d.uuid = ?",
        fields.join(", ")
    );
    select.leak()
});

/// The report of one device.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) fields: ReportedFields,
    /// None if it does not report what it runs.
    pub(super) apps: Option<Apps>,
    /// The commit of its fleet's release that it runs, if reported separately from `apps`.
    pub(super) running: Option<String>,
    /// None if it does not report fields of plugins.
    pub(super) plugin_fields: Option<PluginFields>,
}

/// The stored data of a device.
pub(super) struct StoredDevice {
    pub(super) device: DeviceRef,
    /// The uuid of its fleet.
    fleet: Option<String>,
    public_address: Option<String>,
    /// In the order of [`FIELDS`].
    values: Vec<Value>,
}

impl StoredDevice {
    /// Loads a device; none if it does not exist.
    pub(super) async fn load(cloud: &Cloud, uuid: &str) -> Result<Option<Self>, Refusal> {
        if !cloud_core::device::is_uuid(uuid) {
            return Ok(None);
        }
        let select = SystemPurpose::Report.sql(*SELECT).with(uuid);
        let Some(row) = cloud.database.row(&select).await? else {
            return Ok(None);
        };
        let mut values = Vec::with_capacity(FIELDS.len());
        for (at, field) in FIELDS.iter().enumerate() {
            let at = at + 4;
            values.push(match field.kind {
                FieldKind::Number => row.number(at)?.map_or(Value::Null, Value::from),
                FieldKind::Flag => row.flag(at)?.map_or(Value::Null, Value::from),
                _ => row.text(at)?.map_or(Value::Null, Value::from),
            });
        }
        Ok(Some(StoredDevice {
            device: DeviceRef {
                id: row.id(0)?,
                actor: row.id(1)?,
            },
            fleet: row.text(2)?,
            public_address: row.text(3)?,
            values,
        }))
    }

    fn value(&self, field: &'static Field) -> &Value {
        let at = FIELDS.iter().position(|other| other == field);
        at.and_then(|at| self.values.get(at))
            .unwrap_or(&Value::Null)
    }

    /// Returns what a report changes.
    ///
    /// # Errors
    /// 401 if it names a release or an image that the device could not have.
    pub(super) async fn changed_by(
        &self,
        server: &Server,
        report: Report,
        from: IpAddr,
    ) -> Result<DeviceChanges, Refusal> {
        let cloud = &server.cloud;
        let Report {
            mut fields,
            apps,
            running,
            plugin_fields,
        } = report;
        let is_own = |which: &ReportedApp| match which {
            ReportedApp::Own => true,
            ReportedApp::Uuid(uuid) => Some(uuid) == self.fleet.as_ref(),
        };
        let mut installs = Vec::new();
        let running = running.or_else(|| self.running(apps.as_ref()?));
        let mut runs = None;
        if let Some(apps) = &apps {
            let looked = ReportRows::up(cloud, self.device.id, self.fleet.as_deref(), apps).await?;
            installs = looked.changes(apps)?;
            runs = running
                .as_ref()
                .and_then(|commit| looked.release_of_fleet(commit));
            if let Some(state) = apps.update_status(is_own) {
                fields.set("update_status", state.into());
            }
        }
        if let (None, Some(commit), Some(fleet)) = (runs, running, &self.fleet) {
            runs = installs::release_of(cloud, fleet, &commit).await?;
        }
        if let Some(release) = runs {
            fields.set("is_running__release", release.into());
        }
        let plugin_fields = match plugin_fields {
            Some(fields) if plugin_rows::differ(cloud, self.device.id, &fields).await? => {
                Some(fields)
            }
            _ => None,
        };
        let from = from.to_canonical().to_string();
        let moved = self.public_address.as_deref() != Some(from.as_str());
        Ok(DeviceChanges {
            device: self.device.id,
            fields: self.differing(server, fields),
            public_address: moved.then_some(from),
            installs,
            plugin_fields,
        })
    }

    /// Returns the commit of its own fleet that the device reports as running.
    fn running(&self, apps: &Apps) -> Option<String> {
        let fleet = self.fleet.as_ref()?;
        let mut running = apps.running.iter();
        running
            .find(|(app, _)| app == fleet)
            .map(|(_, commit)| commit.clone())
    }

    /// Returns the fields that should be written.
    fn differing(&self, server: &Server, fields: ReportedFields) -> Vec<(&'static Field, Value)> {
        let mut fields = fields.0;
        fields.retain(|(field, value)| match (field.name, self.value(field)) {
            // A secret that cannot be read is written again.
            (SECRET, Value::String(kept)) => {
                let current_key =
                    supervisor_key(&server.cloud.environment.keyring, self.device.id, kept);
                current_key.as_deref() != value.as_str()
            }
            (_, present) => present != value,
        });
        let only_metrics = fields
            .iter()
            .all(|(field, _)| field.impact == Impact::Metric);
        if only_metrics && !server.devices.metrics.is_due(self.device.id) {
            fields.clear();
        }
        fields
    }
}

/// The changes to write.
pub(super) struct DeviceChanges {
    device: i64,
    fields: Vec<(&'static Field, Value)>,
    public_address: Option<String>,
    installs: Vec<Install>,
    /// All of them, if they differ from the rows.
    plugin_fields: Option<PluginFields>,
}

impl DeviceChanges {
    /// Writes the changes in one transaction; nothing if there are none.
    pub(super) async fn write(self, server: &Server) -> Result<(), Refusal> {
        let is_same = self.fields.is_empty()
            && self.installs.is_empty()
            && self.public_address.is_none()
            && self.plugin_fields.is_none();
        if is_same {
            return Ok(());
        }
        retried(|| self.once(&server.cloud)).await?;
        if self.has(Impact::Metric) {
            server.devices.metrics.is_done(self.device);
        }
        Ok(())
    }

    fn has(&self, impact: Impact) -> bool {
        self.fields.iter().any(|(field, _)| field.impact == impact)
    }

    async fn once(&self, cloud: &Cloud) -> Result<(), WriteError> {
        let now = now();
        let mut transaction = cloud.database.begin().await?;
        if self.has(Impact::Ruled) {
            let fields = self.fields.iter();
            let fields = fields.map(|(field, value)| (field.name.to_owned(), value.clone()));
            let mut body: Map<String, Value> = fields.collect();
            if let Some(from) = &self.public_address {
                body.insert("public_address".to_owned(), from.as_str().into());
            }
            let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Report);
            writer.change("device", &[self.device], &body).await?;
        } else if !self.fields.is_empty() || self.public_address.is_some() {
            self.update(&mut transaction, &cloud.environment.keyring, now)
                .await?;
        }
        if let Some(fields) = &self.plugin_fields {
            plugin_rows::write(&mut transaction, self.device, fields, now).await?;
        }
        installs::write(&mut transaction, self.device, &self.installs, now).await?;
        Ok(transaction.commit().await?)
    }

    /// Writes fields that nothing follows from, except the time.
    async fn update(
        &self,
        transaction: &mut Transaction,
        keyring: &Keyring,
        now: i64,
    ) -> Result<(), WriteError> {
        let mut values: Vec<(Alias, SimpleExpr)> =
            vec![(Alias::new("modified_at"), Expr::val(now))];
        for (field, value) in &self.fields {
            let stored = match (field.name, value) {
                (SECRET, Value::String(secret)) => {
                    let place = SecretLocation::from_row("device", SECRET, self.device);
                    let sealed = keyring.seal(&place, secret).map_err(DataError::from)?;
                    Expr::val(sealed)
                }
                _ => bound(field, value),
            };
            values.push((Alias::new(field.name), stored));
            if field.name == "update_status" {
                values.push((Alias::new("last_update_status_event"), Expr::val(now)));
            }
        }
        if let Some(from) = &self.public_address {
            values.push((Alias::new("public_address"), Expr::val(from.as_str())));
        }
        let update = Query::update()
            .table(Alias::new("device"))
            .values(values)
            .and_where(Expr::col(Alias::new("id")).eq(self.device))
            .take();
        let update = SystemPurpose::Report.statement(update);
        transaction.execute(&update).await?;
        Ok(())
    }
}

/// Returns a value in the form required by the column; a null has a type as well.
fn bound(field: &Field, value: &Value) -> SimpleExpr {
    Expr::val(match field.kind {
        FieldKind::Number => sea_query::Value::BigInt(value.as_i64()),
        FieldKind::Flag => sea_query::Value::Bool(value.as_bool()),
        _ => sea_query::Value::String(value.as_str().map(str::to_owned)),
    })
}
