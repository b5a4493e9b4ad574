//! The organization of the platform's own systems: its fleets provide supervisors and operating systems for all devices
//! (docs/spec/cloud.md#model-system-organization).
//!
//! The cloud creates it, and from then on identifies it by its row: a handle is only a name, which somebody else may
//! have had first.

use resources::Resource;

use crate::caller::SystemPurpose;
use crate::database::Database;
use crate::record::{self, Record};
use crate::rules;
use crate::schema;
use crate::statement::sql;
use crate::write::{Environment, WriteResult, Writer, known};

/// The organization of the platform's own systems, as found or created at a start of the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemOrganization {
    /// Its number.
    pub id: i64,
    /// Its handle: that of the branding, unless an organization of a tenant had that before.
    pub handle: String,
    /// Whether it was just created.
    pub is_new: bool,
    /// The number of devices whose target supervisor or operating system was removed, because it was a release neither
    /// of this organization nor of the device's own. Determined only on creation.
    pub freed_devices: usize,
}

impl Database {
    /// Creates the system's organization if there is none, and gives it the handle of the branding as soon as that is
    /// free. `now` is in milliseconds.
    ///
    /// # Errors
    /// [`WriteError`]; then nothing is changed.
    pub async fn keep_system_organization(
        &self,
        environment: &Environment,
        now: i64,
    ) -> WriteResult<SystemOrganization> {
        let mut transaction = self.begin().await?;
        schema::alone(&mut transaction).await?;
        let mut writer = Writer::platform(SystemPurpose::Rules, &mut transaction, environment, now);
        let organization = keep(&mut writer).await?;
        transaction.commit().await?;
        Ok(organization)
    }
}

async fn keep(writer: &mut Writer<'_>) -> WriteResult<SystemOrganization> {
    let resource = known("organization")?;
    let there =
        sql("SELECT id, handle FROM organization WHERE is_system = TRUE ORDER BY id LIMIT 1");
    let preferred_handle = writer.environment.branding.os_organization.clone();
    let Some(row) = writer.transaction.row(&there).await? else {
        return make(writer, resource, &preferred_handle).await;
    };
    let mut organization = SystemOrganization {
        id: row.id(0)?,
        handle: row.some_text(1)?,
        is_new: false,
        freed_devices: 0,
    };
    if organization.handle != preferred_handle && is_free(writer, &preferred_handle).await? {
        let mut values = Record::default();
        values.set_text("handle", preferred_handle.as_str());
        values.set_number("modified_at", writer.now());
        record::update(writer.transaction, resource, &[organization.id], &values).await?;
        rules::give_slugs(writer, organization.id, &preferred_handle).await?;
        organization.handle = preferred_handle;
    }
    Ok(organization)
}

// Not as a request would: no request may use this handle.
async fn make(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    preferred_handle: &str,
) -> WriteResult<SystemOrganization> {
    let mut handle = preferred_handle.to_owned();
    let mut number = 1;
    while !is_free(writer, &handle).await? {
        number += 1;
        handle = format!("{preferred_handle}_{number}");
    }
    let mut values = Record::made_at(writer.now());
    values.set_text("name", preferred_handle);
    values.set_text("handle", handle.as_str());
    values.set("is_system", resources::StoredValue::Boolean(true));
    let id = record::insert(writer.transaction, resource, &values).await?;
    // A database of an earlier version: only its first start created a user before listening, so number 1 belongs to
    // its administrator, or to nobody.
    let first = sql("UPDATE \"user\" SET is_cloud_administrator = TRUE WHERE id = 1");
    writer.transaction.execute(&first).await?;
    let freed_devices = rules::drop_those_of_strangers(writer, None).await?;
    Ok(SystemOrganization {
        id,
        handle,
        is_new: true,
        freed_devices,
    })
}

async fn is_free(writer: &mut Writer<'_>, handle: &str) -> WriteResult<bool> {
    let owner = record::with_value(writer.transaction, "organization", "handle", handle).await?;
    Ok(owner.is_none())
}
