//! How much an organization may keep, and a device or another row of it.
//!
//! What is kept is counted in the transaction that adds to it, by indexes, and refused where it is more than the quota.
//! Requests that add at the same moment do not see each other: an organization may come over its quota by as many rows
//! as there are connections to the database. The cloud's defaults are configured; an administrator of the cloud gives
//! an organization others. What is counted for a user goes by the configuration alone.

use serde::Deserialize;

use crate::database::Database;
use crate::dialect::Dialect;
use crate::error::DataError;
use crate::keyring;
use crate::names::QUOTAS;
use crate::owner::{self, OwnerLink};
use crate::statement::{BuiltStatement, sql};
use crate::transaction::Transaction;
use crate::write::{WriteError, Writer, known};

/// What an organization may keep, unless it is given others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// Fleets of an organization.
    pub fleets: u32,
    /// Devices in all of its fleets.
    pub devices: u32,
    /// Releases of all of its fleets.
    pub releases: u32,
    /// Images of the services of all of its fleets.
    pub images: u32,
    /// Files beside them.
    pub release_assets: u32,
    /// Bytes of these files.
    pub release_asset_bytes: u64,
    /// Its members; and people with whom one of its fleets is shared.
    pub members: u32,
    /// Invites to it that nobody has accepted yet; and those to one of its fleets.
    pub invites: u32,
    /// Its teams.
    pub teams: u32,
    /// Lines of logs that all of its devices send in a second, at each replica.
    pub organization_log_lines_per_second: u32,
    /// Lines of logs that one device sends in a second, at each replica.
    pub log_lines_per_second: u32,
    /// Services of one fleet.
    pub services: u32,
    /// Tags of one device, fleet or release.
    pub tags: u32,
    /// Bytes of their values.
    pub tag_bytes: u64,
    /// Variables or labels of one kind of one device, fleet, service or image.
    pub variables: u32,
    /// Bytes of their values.
    pub variable_bytes: u64,
    /// Keys of one user, fleet or device.
    pub keys: u32,
    /// SSH keys of one user.
    pub public_keys: u32,
    /// Organizations that one user is a member of.
    pub organizations: u32,
}

impl Default for Quotas {
    fn default() -> Self {
        Quotas {
            fleets: 1000,
            devices: 50_000,
            releases: 50_000,
            images: 200_000,
            release_assets: 10_000,
            release_asset_bytes: 20_000_000_000,
            members: 5_000,
            invites: 1_000,
            teams: 500,
            organization_log_lines_per_second: 20_000,
            log_lines_per_second: 100,
            services: 1_000,
            tags: 500,
            tag_bytes: 1 << 20,
            variables: 1000,
            variable_bytes: 4 << 20,
            keys: 1_000,
            public_keys: 200,
            organizations: 500,
        }
    }
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// [`Quotas::fleets`]
    Fleets,
    /// [`Quotas::devices`]
    Devices,
    /// [`Quotas::releases`]
    Releases,
    /// [`Quotas::images`]
    Images,
    /// [`Quotas::release_assets`]
    ReleaseAssets,
    /// [`Quotas::release_asset_bytes`]
    ReleaseAssetBytes,
    /// [`Quotas::members`]
    Members,
    /// [`Quotas::invites`]
    Invites,
    /// [`Quotas::teams`]
    Teams,
    /// [`Quotas::organization_log_lines_per_second`]
    OrganizationLogLines,
    /// [`Quotas::log_lines_per_second`]
    LogLines,
    /// [`Quotas::services`]
    Services,
    /// [`Quotas::tags`]
    Tags,
    /// [`Quotas::tag_bytes`]
    TagBytes,
    /// [`Quotas::variables`]
    Variables,
    /// [`Quotas::variable_bytes`]
    VariableBytes,
    /// [`Quotas::keys`]
    Keys,
    /// [`Quotas::public_keys`]
    PublicKeys,
    /// [`Quotas::organizations`]
    Organizations,
}

impl Quota {
    /// Those of organizations; what is counted for the whole of one comes first.
    pub const ALL: [Quota; 16] = [
        Quota::Fleets,
        Quota::Devices,
        Quota::Releases,
        Quota::Images,
        Quota::ReleaseAssets,
        Quota::ReleaseAssetBytes,
        Quota::Members,
        Quota::Invites,
        Quota::Teams,
        Quota::OrganizationLogLines,
        Quota::LogLines,
        Quota::Services,
        Quota::Tags,
        Quota::TagBytes,
        Quota::Variables,
        Quota::VariableBytes,
    ];

    /// As requests, settings and messages call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Quota::Fleets => "fleets",
            Quota::Devices => "devices",
            Quota::Releases => "releases",
            Quota::Images => "images",
            Quota::ReleaseAssets => "release_assets",
            Quota::ReleaseAssetBytes => "release_asset_bytes",
            Quota::Members => "members",
            Quota::Invites => "invites",
            Quota::Teams => "teams",
            Quota::OrganizationLogLines => "organization_log_lines_per_second",
            Quota::LogLines => "log_lines_per_second",
            Quota::Services => "services",
            Quota::Tags => "tags",
            Quota::TagBytes => "tag_bytes",
            Quota::Variables => "variables",
            Quota::VariableBytes => "variable_bytes",
            Quota::Keys => "keys",
            Quota::PublicKeys => "public_keys",
            Quota::Organizations => "organizations",
        }
    }

    /// As people read it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Quota::Fleets => "Fleets",
            Quota::Devices => "Devices",
            Quota::Releases => "Releases",
            Quota::Images => "Images",
            Quota::ReleaseAssets => "Files beside releases",
            Quota::ReleaseAssetBytes => "Bytes of these files",
            Quota::Members => "Members; people with whom a fleet is shared",
            Quota::Invites => "Open invites; those to a fleet",
            Quota::Teams => "Teams",
            Quota::OrganizationLogLines => "Lines of logs a second, of all devices",
            Quota::LogLines => "Lines of logs a second, of a device",
            Quota::Services => "Services of a fleet",
            Quota::Tags => "Tags of a device, fleet or release",
            Quota::TagBytes => "Bytes of these tags",
            Quota::Variables => "Variables of a device, fleet, service or image",
            Quota::VariableBytes => "Bytes of these variables",
            Quota::Keys => "Keys of a user, fleet or device",
            Quota::PublicKeys => "SSH keys of a user",
            Quota::Organizations => "Organizations of a user",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Quota::ALL.into_iter().find(|quota| quota.name() == name)
    }

    /// What an organization has of it that was given no other.
    #[must_use]
    pub fn default(self, quotas: &Quotas) -> u64 {
        match self {
            Quota::Fleets => quotas.fleets.into(),
            Quota::Devices => quotas.devices.into(),
            Quota::Releases => quotas.releases.into(),
            Quota::Images => quotas.images.into(),
            Quota::ReleaseAssets => quotas.release_assets.into(),
            Quota::ReleaseAssetBytes => quotas.release_asset_bytes,
            Quota::Members => quotas.members.into(),
            Quota::Invites => quotas.invites.into(),
            Quota::Teams => quotas.teams.into(),
            Quota::OrganizationLogLines => quotas.organization_log_lines_per_second.into(),
            Quota::LogLines => quotas.log_lines_per_second.into(),
            Quota::Services => quotas.services.into(),
            Quota::Tags => quotas.tags.into(),
            Quota::TagBytes => quotas.tag_bytes,
            Quota::Variables => quotas.variables.into(),
            Quota::VariableBytes => quotas.variable_bytes,
            Quota::Keys => quotas.keys.into(),
            Quota::PublicKeys => quotas.public_keys.into(),
            Quota::Organizations => quotas.organizations.into(),
        }
    }

    /// How much the organization `{of}` keeps, where it is counted for the whole of it.
    fn kept(self, dialect: Dialect) -> Result<Option<String>, WriteError> {
        let is_counted = |rule: &&QuotaRule| {
            rule.counted_for == QuotaSubject::Organization
                && (rule.number == self || rule.bytes == Some(self))
        };
        let Some(rule) = RULES.iter().find(is_counted) else {
            return Ok(None);
        };
        let is_one = owner::is_of_organization(&rule.links()?, "{of}");
        let resource = rule.resource;
        Ok(Some(match self {
            Quota::ReleaseAssetBytes => {
                format!("{} WHERE x.{is_one}", bytes_of_assets(dialect))
            }
            _ => format!("SELECT count(*) FROM {resource} WHERE {is_one}"),
        }))
    }
}

/// The bytes of files beside releases `x`, with what is being uploaded in parts.
fn bytes_of_assets(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => {
            "SELECT coalesce(sum(coalesce(CASE WHEN json_valid(x.asset) THEN json_extract(x.asset, '$.size') END, 0) \
             + coalesce(u.size, 0)), 0) FROM release_asset AS x \
             LEFT JOIN release_asset_upload AS u ON u.release_asset = x.id"
        }
        Dialect::Postgres => {
            "SELECT CAST(coalesce(sum(coalesce(CAST(substring(x.asset FROM '\"size\":([0-9]{1,18})') AS bigint), 0) \
             + coalesce(u.size, 0)), 0) AS bigint) FROM release_asset AS x \
             LEFT JOIN release_asset_upload AS u ON u.release_asset = x.id"
        }
    }
}

/// Rows that count.
struct QuotaRule {
    resource: &'static str,
    /// The link from a row to what it is of, which leads on to the organization.
    link: &'static str,
    counted_for: QuotaSubject,
    number: Quota,
    bytes: Option<Quota>,
}

/// What rows are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuotaSubject {
    /// The whole organization.
    Organization,
    /// The row that the link leads to, by the quota of its organization.
    Owner,
    /// The same, which is of no organization.
    OwnerAlone,
}

const RULES: [QuotaRule; 27] = [
    whole("application", "organization", Quota::Fleets, None),
    whole("device", "belongs_to__application", Quota::Devices, None),
    whole("release", "belongs_to__application", Quota::Releases, None),
    whole("image", "is_a_build_of__service", Quota::Images, None),
    whole(
        "organization_membership",
        "is_member_of__organization",
        Quota::Members,
        None,
    ),
    whole(
        "organization_invite",
        "is_invited_to__organization",
        Quota::Invites,
        None,
    ),
    whole("team", "belongs_to__organization", Quota::Teams, None),
    each("service", "application", Quota::Services, None),
    each(
        "user_application_membership",
        "is_member_of__application",
        Quota::Members,
        None,
    ),
    each(
        "application_invite",
        "is_invited_to__application",
        Quota::Invites,
        None,
    ),
    of_nobody("api_key", "is_of__actor", Quota::Keys),
    of_nobody("user__has__public_key", "user", Quota::PublicKeys),
    of_nobody("organization_membership", "user", Quota::Organizations),
    whole(
        "release_asset",
        "release",
        Quota::ReleaseAssets,
        Some(Quota::ReleaseAssetBytes),
    ),
    tag("device_tag", "device"),
    tag("application_tag", "application"),
    tag("release_tag", "release"),
    variable("device_config_variable", "device"),
    variable("device_environment_variable", "device"),
    variable("device_service_environment_variable", "service_install"),
    variable("application_config_variable", "application"),
    variable("application_environment_variable", "application"),
    variable("build_environment_variable", "application"),
    variable("service_environment_variable", "service"),
    variable("image_environment_variable", "release_image"),
    variable("image_label", "release_image"),
    variable("service_label", "service"),
];

const fn whole(
    resource: &'static str,
    link: &'static str,
    number: Quota,
    bytes: Option<Quota>,
) -> QuotaRule {
    QuotaRule {
        resource,
        link,
        counted_for: QuotaSubject::Organization,
        number,
        bytes,
    }
}

const fn each(
    resource: &'static str,
    link: &'static str,
    number: Quota,
    bytes: Option<Quota>,
) -> QuotaRule {
    QuotaRule {
        counted_for: QuotaSubject::Owner,
        ..whole(resource, link, number, bytes)
    }
}

const fn of_nobody(resource: &'static str, link: &'static str, number: Quota) -> QuotaRule {
    QuotaRule {
        counted_for: QuotaSubject::OwnerAlone,
        ..whole(resource, link, number, None)
    }
}

const fn tag(resource: &'static str, link: &'static str) -> QuotaRule {
    each(resource, link, Quota::Tags, Some(Quota::TagBytes))
}

const fn variable(resource: &'static str, link: &'static str) -> QuotaRule {
    each(resource, link, Quota::Variables, Some(Quota::VariableBytes))
}

impl QuotaRule {
    /// The statement that answers how much there is of a quota, and which one the organization was given.
    fn statement(
        &self,
        quota: Quota,
        row: i64,
        dialect: Dialect,
    ) -> Result<BuiltStatement, WriteError> {
        let organization = self.organization()?;
        let limit = match (self.counted_for, quota.kept(dialect)?) {
            (QuotaSubject::Organization, Some(limit)) => limit.replace("{of}", &organization),
            _ => {
                let (resource, owner) = (self.resource, self.link);
                let what = if Some(quota) == self.bytes {
                    self.bytes_of_values(dialect)?
                } else {
                    "count(*)".to_owned()
                };
                format!(
                    "SELECT {what} FROM {resource} WHERE \"{owner}\" = (SELECT \"{owner}\" FROM {resource} WHERE id = {{row}})"
                )
            }
        };
        let text = format!(
            "SELECT ({limit}), (SELECT value FROM {QUOTAS} WHERE organization = {organization} AND name = '{}')",
            quota.name()
        );
        let row_is = match dialect {
            Dialect::Sqlite => "?1",
            Dialect::Postgres => "$1",
        };
        Ok(BuiltStatement::new(
            text.replace("{row}", row_is),
            [row.into()],
        ))
    }

    /// The bytes of all values, as they were written: encrypted ones are longer.
    fn bytes_of_values(&self, dialect: Dialect) -> Result<String, WriteError> {
        let bytes = match dialect {
            Dialect::Sqlite => "length(CAST(value AS BLOB))",
            Dialect::Postgres => "octet_length(value)",
        };
        let field = known(self.resource)?.find_field("value");
        let bytes = match field.and_then(|field| field.secret_where) {
            Some(flag) => keyring::bytes_within(dialect, flag, bytes),
            None => bytes.to_owned(),
        };
        Ok(format!("CAST(coalesce(sum({bytes}), 0) AS bigint)"))
    }

    /// The links that lead from a row to its organization.
    fn links(&self) -> Result<Vec<OwnerLink>, WriteError> {
        owner::links_to_organization(self.resource, Some(self.link)).ok_or_else(|| {
            let (resource, link) = (self.resource, self.link);
            WriteError::Broken(format!(
                "the link `{link}` of `{resource}` leads to no organization"
            ))
        })
    }

    /// The organization of the row `{row}`, as an expression.
    fn organization(&self) -> Result<String, WriteError> {
        match self.counted_for {
            QuotaSubject::OwnerAlone => Ok("CAST(NULL AS bigint)".to_owned()),
            _ => Ok(owner::organization_of(&self.links()?, "{row}")),
        }
    }

    fn refusal(&self, quota: Quota, most: u64, kept: u64) -> WriteError {
        let name = quota.name();
        let whose = match (self.counted_for, self.link) {
            (QuotaSubject::Organization, _) => "organization".to_owned(),
            (_, "is_of__actor") => "holder of the keys".to_owned(),
            (_, "is_member_of__application" | "is_invited_to__application") => "fleet".to_owned(),
            (_, owner) => owner.replace('_', " "),
        };
        let who = match self.counted_for {
            QuotaSubject::OwnerAlone => {
                format!("the operator of the cloud can change it (`quotas.{name}`)")
            }
            _ => "an administrator of the cloud can give the organization another quota".to_owned(),
        };
        WriteError::Forbidden(format!(
            "the {whose} may have {most} by the quota `{name}`, and this would make it {kept}; {who}"
        ))
    }
}

/// Nothing is more than it may be now that this row was made, or that it was changed.
///
/// # Errors
/// [`WriteError::Forbidden`] names the quota.
pub(crate) async fn check(
    writer: &mut Writer<'_>,
    resource: &str,
    row: i64,
) -> Result<(), WriteError> {
    let quotas = writer.environment.quotas;
    check_in(writer.transaction, &quotas, resource, row).await
}

/// The same in a transaction that no writer has.
///
/// # Errors
/// As [`check`].
pub(crate) async fn check_in(
    transaction: &mut Transaction,
    quotas: &Quotas,
    resource: &str,
    row: i64,
) -> Result<(), WriteError> {
    let dialect = transaction.dialect();
    for rule in RULES.iter().filter(|rule| rule.resource == resource) {
        for quota in [Some(rule.number), rule.bytes].into_iter().flatten() {
            let statement = rule.statement(quota, row, dialect)?;
            let Some(found) = transaction.row(&statement).await? else {
                continue;
            };
            let kept = u64::try_from(found.number(0)?.unwrap_or_default()).unwrap_or_default();
            let given = found.number(1)?.and_then(|given| u64::try_from(given).ok());
            let most = given.unwrap_or_else(|| quota.default(quotas));
            if kept > most {
                return Err(rule.refusal(quota, most, kept));
            }
        }
    }
    Ok(())
}

/// What an organization has of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Which.
    pub quota: Quota,
    /// How much it may keep.
    pub most: u64,
    /// Whether an administrator of the cloud gave it this one.
    pub given: bool,
    /// How much it keeps, where that is counted for the whole organization.
    pub kept: Option<u64>,
}

impl Database {
    /// What an organization has of each quota.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn quotas(
        &self,
        organization: i64,
        defaults: &Quotas,
    ) -> Result<Vec<QuotaUsage>, WriteError> {
        let dialect = self.dialect();
        let mut all = Vec::new();
        for quota in Quota::ALL {
            let of = match dialect {
                Dialect::Sqlite => "?1",
                Dialect::Postgres => "$1",
            };
            let limit_sql = quota.kept(dialect)?;
            let limit_sql = limit_sql
                .as_deref()
                .unwrap_or("SELECT CAST(NULL AS bigint)");
            let text = format!(
                "SELECT ({}), (SELECT value FROM {QUOTAS} WHERE organization = {of} AND name = '{}')",
                limit_sql.replace("{of}", of),
                quota.name()
            );
            let row = self
                .row(&BuiltStatement::new(text, [organization.into()]))
                .await?;
            let number = |at| -> Result<Option<u64>, DataError> {
                let number = row.as_ref().map(|row| row.number(at)).transpose()?;
                Ok(number
                    .flatten()
                    .and_then(|number| u64::try_from(number).ok()))
            };
            let given = number(1)?;
            all.push(QuotaUsage {
                quota,
                most: given.unwrap_or_else(|| quota.default(defaults)),
                given: given.is_some(),
                kept: number(0)?,
            });
        }
        Ok(all)
    }
}

impl Database {
    /// The organization of a device, if it has one, and what its devices may send in a second: lines of one device,
    /// and of all of them.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn log_line_quotas(
        &self,
        device: i64,
        defaults: &Quotas,
    ) -> Result<LogLineQuotas, DataError> {
        let given = "SELECT q.value FROM organization_quota AS q WHERE q.organization = a.organization AND q.name =";
        let of = match self.dialect() {
            Dialect::Sqlite => "?1",
            Dialect::Postgres => "$1",
        };
        let text = format!(
            "SELECT a.organization, ({given} '{}'), ({given} '{}') FROM device AS d \
             JOIN application AS a ON a.id = d.belongs_to__application WHERE d.id = {of}",
            Quota::LogLines.name(),
            Quota::OrganizationLogLines.name()
        );
        let row = self
            .row(&BuiltStatement::new(text, [device.into()]))
            .await?;
        let number = |at, quota: Quota| -> Result<u32, DataError> {
            let given = row
                .as_ref()
                .map(|row| row.number(at))
                .transpose()?
                .flatten();
            let given = given.and_then(|given| u64::try_from(given).ok());
            let most = given.unwrap_or_else(|| quota.default(defaults));
            Ok(u32::try_from(most).unwrap_or(u32::MAX))
        };
        Ok(LogLineQuotas {
            organization: row.as_ref().map(|row| row.number(0)).transpose()?.flatten(),
            of_device: number(1, Quota::LogLines)?,
            of_organization: number(2, Quota::OrganizationLogLines)?,
        })
    }
}

/// Lines of logs that may be sent in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLineQuotas {
    /// Whose the device is; none where it is of no fleet.
    pub organization: Option<i64>,
    /// By the device.
    pub of_device: u32,
    /// By all devices of the organization.
    pub of_organization: u32,
}

/// Gives an organization a quota of its own, or, where it is none, takes it back to the default.
///
/// # Errors
/// Where the database fails.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_leads_from_each_row_that_counts_to_its_organization() {
        for rule in &RULES {
            let way = rule.organization().unwrap();
            let ends = match rule.counted_for {
                QuotaSubject::OwnerAlone => "CAST(NULL AS bigint)",
                _ => "organization\" FROM ",
            };
            assert!(way.contains(ends), "{}: {way}", rule.resource);
        }
    }

    #[test]
    fn what_is_counted_for_the_whole_of_an_organization_comes_first() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let whole = Quota::ALL.map(|quota| quota.kept(dialect).unwrap());
            let many = whole.iter().take_while(|kept| kept.is_some()).count();
            assert_eq!(many, 9);
            assert!(whole[many..].iter().all(Option::is_none));
            let images = whole[3].as_deref().unwrap();
            assert_eq!(
                images,
                "SELECT count(*) FROM image WHERE \"is_a_build_of__service\" IN (SELECT id FROM \"service\" WHERE \
                 \"application\" IN (SELECT id FROM \"application\" WHERE \"organization\" = {of}))"
            );
        }
    }
}
