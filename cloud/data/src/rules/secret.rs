//! Values that can be read only by the devices that receive them ([`resources::Field::secret_where`]).

use resources::Resource;

use crate::sealed::secret_field;
use crate::write::{Change, WriteError, WriteResult, Writer};

/// Checks a row that is about to be created.
pub(super) fn before_create(
    writer: &Writer<'_>,
    resource: &'static Resource,
    change: &Change,
) -> WriteResult {
    match secret_field(resource) {
        Some((_, flag)) if change.flag(flag) => may_be_secret(writer, change),
        _ => Ok(()),
    }
}

/// Checks rows that are about to be changed. A secret value is neither shown nor given to others than before: such a
/// change requires a new value.
pub(super) fn before_change(
    writer: &Writer<'_>,
    resource: &'static Resource,
    changes: &[Change],
) -> WriteResult {
    let Some((value, flag)) = secret_field(resource) else {
        return Ok(());
    };
    let owners = resource.fields.iter().filter(|field| field.belongs);
    let owners: Vec<&'static str> = owners.map(|field| field.name).collect();
    for change in changes {
        if change.flag(flag) {
            may_be_secret(writer, change)?;
        }
        if change.old.flag(flag) != Some(true) || change.new.has(value.name) {
            continue;
        }
        let value = value.name;
        if !change.flag(flag) {
            return Err(WriteError::Refused(format!(
                "`{flag}` becomes false only together with a new `{value}`, because nobody can read the secret one"
            )));
        }
        if let Some(owner) = owners.iter().find(|owner| change.alters(owner)) {
            return Err(WriteError::Refused(format!(
                "`{owner}` of a secret `{}` changes only together with a new `{value}`",
                resource.name
            )));
        }
    }
    Ok(())
}

/// Checks that a value may be secret: the cloud itself uses some settings, and shows the result to everybody who sees
/// the device.
fn may_be_secret(writer: &Writer<'_>, change: &Change) -> WriteResult {
    writer.warn_of_plain_text();
    let name = change.text("name").unwrap_or_default();
    let branding = &writer.environment.branding;
    let mut visible_names = branding.variables("SUPERVISOR_VPN_CONTROL");
    if visible_names.any(|visible_names| visible_names == name) {
        Err(WriteError::Refused(format!(
            "`{name}` cannot be secret: the status of devices shows its value"
        )))
    } else {
        Ok(())
    }
}
