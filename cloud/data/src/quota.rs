//! Limits on what an organization may store, and a device or another row of it.
//!
//! Usage is counted in the transaction that adds to it, by indexes, and the addition is refused if it exceeds the
//! quota. Requests that add at the same moment do not see each other: an organization may exceed its quota by as many
//! rows as there are connections to the database. The cloud's defaults are configured; an administrator of the cloud
//! can give an organization other quotas. Quotas of users are always the configured ones.

mod rule;
mod settings;

use crate::database::Database;
use crate::error::DataError;
use crate::refusal::WriteResult;
use crate::row::Row;
use crate::statement::{BuiltStatement, sql};
use crate::transaction::Transaction;
use rule::RULES;
pub use settings::{Quota, Quotas};

/// Checks that no quota is exceeded after this row was created or changed.
///
/// # Errors
/// [`WriteError::Forbidden`] names the quota.
pub(crate) async fn check(
    transaction: &mut Transaction,
    quotas: &Quotas,
    resource: &str,
    row: i64,
) -> WriteResult {
    let dialect = transaction.dialect();
    for rule in RULES.iter().filter(|rule| rule.resource == resource) {
        for quota in [Some(rule.number), rule.bytes].into_iter().flatten() {
            let statement = rule.statement(quota, row, dialect)?;
            let row = transaction.row(&statement).await?;
            let count = number(&row, 0)?.unwrap_or_default();
            let most = number(&row, 1)?.unwrap_or_else(|| quota.default(quotas));
            if count > most {
                return Err(rule.refusal(quota, most, count));
            }
        }
    }
    Ok(())
}

/// Returns a number of a row, unless it is negative.
fn number(row: &Option<Row>, at: usize) -> Result<Option<u64>, DataError> {
    let number = row.as_ref().map(|row| row.number(at)).transpose()?;
    let number = number.flatten();
    Ok(number.and_then(|number| u64::try_from(number).ok()))
}

/// An organization's limit and usage of one quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUsage {
    /// The quota.
    pub quota: Quota,
    /// The limit.
    pub most: u64,
    /// Whether an administrator of the cloud set this limit.
    pub given: bool,
    /// The current usage, if it is counted for the whole organization.
    pub kept: Option<u64>,
}

impl Database {
    /// Returns an organization's limit and usage of each quota.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn quotas(
        &self,
        organization: i64,
        defaults: &Quotas,
    ) -> WriteResult<Vec<QuotaUsage>> {
        let dialect = self.dialect();
        let mut all = Vec::new();
        for quota in Quota::ALL {
            let of = dialect.first_parameter();
            let count = quota.kept(dialect)?;
            let count = count.as_deref().unwrap_or("SELECT CAST(NULL AS bigint)");
            let text = format!(
                "SELECT ({}), (SELECT value FROM organization_quota WHERE organization = {of} AND name = '{}')",
                count.replace("{of}", of),
                quota.name()
            );
            let row = self
                .row(&BuiltStatement::new(text, [organization.into()]))
                .await?;
            let own = number(&row, 1)?;
            all.push(QuotaUsage {
                quota,
                most: own.unwrap_or_else(|| quota.default(defaults)),
                given: own.is_some(),
                kept: number(&row, 0)?,
            });
        }
        Ok(all)
    }

    /// Returns the organization of a device, if it has one, and the number of log lines that may be sent per second: by
    /// one device, and by all devices of the organization.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn log_line_quotas(
        &self,
        device: i64,
        defaults: &Quotas,
    ) -> Result<LogLineQuotas, DataError> {
        let own = "SELECT q.value FROM organization_quota AS q WHERE q.organization = a.organization AND q.name =";
        let of = self.dialect().first_parameter();
        let text = format!(
            "SELECT a.organization, ({own} '{}'), ({own} '{}') FROM device AS d \
             JOIN application AS a ON a.id = d.belongs_to__application WHERE d.id = {of}",
            Quota::LogLines.name(),
            Quota::OrganizationLogLines.name()
        );
        let row = self
            .row(&BuiltStatement::new(text, [device.into()]))
            .await?;
        let most = |at, quota: Quota| -> Result<u32, DataError> {
            let most = number(&row, at)?.unwrap_or_else(|| quota.default(defaults));
            Ok(u32::try_from(most).unwrap_or(u32::MAX))
        };
        Ok(LogLineQuotas {
            organization: row.as_ref().map(|row| row.number(0)).transpose()?.flatten(),
            of_device: most(1, Quota::LogLines)?,
            of_organization: most(2, Quota::OrganizationLogLines)?,
        })
    }
}

/// Log lines that may be sent per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLineQuotas {
    /// The organization of the device; `None` if the device has no fleet.
    pub organization: Option<i64>,
    /// By the device.
    pub of_device: u32,
    /// By all devices of the organization.
    pub of_organization: u32,
}

/// Sets an organization's own limit of a quota, or, for `None`, restores the default.
///
/// # Errors
/// If the database fails.
pub async fn give(
    transaction: &mut Transaction,
    organization: i64,
    quota: Quota,
    most: Option<i64>,
) -> Result<(), DataError> {
    let before = sql("DELETE FROM organization_quota WHERE organization = ? AND name = ?");
    transaction
        .execute(&before.with(organization).with(quota.name()))
        .await?;
    if let Some(most) = most {
        let give =
            sql("INSERT INTO organization_quota (organization, name, value) VALUES (?, ?, ?)");
        let give = give.with(organization).with(quota.name()).with(most);
        transaction.execute(&give).await?;
    }
    Ok(())
}
