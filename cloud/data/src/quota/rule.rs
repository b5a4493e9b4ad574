//! The rows that count towards each quota, and the statements that count them.

use super::settings::Quota;
use crate::dialect::Dialect;
use crate::keyring;
use crate::owner::{self, OwnerLink};
use crate::refusal::{WriteError, WriteResult};
use crate::statement::BuiltStatement;

/// Selects the bytes of release assets `x`, including uploads in progress.
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

/// Rows that count towards a quota.
pub(super) struct QuotaRule {
    pub(super) resource: &'static str,
    /// The link from a row to its owner, which leads on to the organization.
    link: &'static str,
    counted_for: QuotaSubject,
    pub(super) number: Quota,
    pub(super) bytes: Option<Quota>,
}

/// What rows are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuotaSubject {
    /// The whole organization.
    Organization,
    /// The row that the link leads to; the quota is that of its organization.
    Owner,
    /// The row that the link leads to, which belongs to no organization.
    OwnerAlone,
}

pub(super) const RULES: [QuotaRule; 27] = [
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
    counted_for_owner("api_key", "is_of__actor", Quota::Keys),
    counted_for_owner("user__has__public_key", "user", Quota::PublicKeys),
    counted_for_owner("organization_membership", "user", Quota::Organizations),
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

const fn counted_for_owner(resource: &'static str, link: &'static str, number: Quota) -> QuotaRule {
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
    /// Returns the statement for the current usage of a quota, and the organization's own limit.
    pub(super) fn statement(
        &self,
        quota: Quota,
        row: i64,
        dialect: Dialect,
    ) -> WriteResult<BuiltStatement> {
        let organization = self.organization()?;
        let limit = match (self.counted_for, quota.kept(dialect)?) {
            (QuotaSubject::Organization, Some(limit)) => limit.replace("{of}", &organization),
            _ => {
                let (resource, owner) = (self.resource, self.link);
                let what = if Some(quota) == self.bytes {
                    self.bytes_of_values(dialect)
                } else {
                    "count(*)".to_owned()
                };
                format!(
                    "SELECT {what} FROM {resource} WHERE \"{owner}\" = (SELECT \"{owner}\" FROM {resource} WHERE id = {{row}})"
                )
            }
        };
        let text = format!(
            "SELECT ({limit}), (SELECT value FROM organization_quota WHERE organization = {organization} AND name = '{}')",
            quota.name()
        );
        let text = text.replace("{row}", dialect.first_parameter());
        Ok(BuiltStatement::new(text, [row.into()]))
    }

    /// Returns the bytes of all values, as they were written: encrypted ones are longer.
    fn bytes_of_values(&self, dialect: Dialect) -> String {
        let bytes = match dialect {
            Dialect::Sqlite => "length(CAST(value AS BLOB))",
            Dialect::Postgres => "octet_length(value)",
        };
        let resource = resources::v7().resource(self.resource);
        let field = resource.and_then(|resource| resource.find_field("value"));
        let bytes = match field.and_then(|field| field.secret_where) {
            Some(flag) => keyring::bytes_within(dialect, flag, bytes),
            None => bytes.to_owned(),
        };
        format!("CAST(coalesce(sum({bytes}), 0) AS bigint)")
    }

    /// Returns the links that lead from a row to its organization.
    fn links(&self) -> WriteResult<Vec<OwnerLink>> {
        owner::links_to_organization(self.resource, Some(self.link)).ok_or_else(|| {
            let (resource, link) = (self.resource, self.link);
            WriteError::Broken(format!(
                "the link `{link}` of `{resource}` leads to no organization"
            ))
        })
    }

    /// Returns the organization of the row `{row}`, as an expression.
    fn organization(&self) -> WriteResult<String> {
        match self.counted_for {
            QuotaSubject::OwnerAlone => Ok("CAST(NULL AS bigint)".to_owned()),
            _ => Ok(owner::organization_of(&self.links()?, "{row}")),
        }
    }

    pub(super) fn refusal(&self, quota: Quota, most: u64, count: u64) -> WriteError {
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
            "the quota `{name}` limits the {whose} to {most}, but this would make it {count}; {who}"
        ))
    }
}

impl Quota {
    /// Selects the usage of the organization `{of}`, if it is counted for the whole organization.
    pub(super) fn kept(self, dialect: Dialect) -> WriteResult<Option<String>> {
        let counts = |rule: &&QuotaRule| {
            rule.counted_for == QuotaSubject::Organization
                && (rule.number == self || rule.bytes == Some(self))
        };
        let Some(rule) = RULES.iter().find(counts) else {
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
    fn quotas_of_a_whole_organization_come_first() {
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
