//! `members` and `member …`: who belongs to an organization, and with whom a fleet is shared.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::organizations;
use crate::arguments::people::{Group, MemberCommand};
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find;
use crate::odata::literal;
use crate::output::{Output, plain, quiet};
use crate::rows::{self, Id};

/// An organization or fleet that has members, and its resources in the API.
pub(super) struct MemberOwner {
    /// Its name as it is printed.
    pub(super) name: String,
    pub(super) id: i64,
    /// The resource of its memberships.
    memberships: &'static str,
    /// Their link to the organization or fleet.
    link: &'static str,
    /// The resource of its invitations, and their link to the organization or fleet.
    pub(super) invitations: &'static str,
    pub(super) invited_to: &'static str,
    /// The resource of its roles, which is also their field in a membership.
    pub(super) roles: &'static str,
    /// The argument that names it on the command line.
    pub(super) argument: String,
}

impl MemberOwner {
    pub(super) async fn group(cloud: &Cloud, group: &Group) -> Result<Self> {
        if let Some(fleet) = &group.fleet {
            let fleet = find::fleet(cloud, fleet).await?;
            return Ok(MemberOwner {
                name: format!("the fleet {}", fleet.slug),
                id: fleet.id,
                memberships: "user_application_membership",
                link: "is_member_of__application",
                invitations: "application_invite",
                invited_to: "is_invited_to__application",
                roles: "application_membership_role",
                argument: format!("--fleet {}", fleet.slug),
            });
        }
        let organization = organizations::meant(cloud, group.organization.as_deref()).await?;
        Ok(MemberOwner {
            name: format!("the organization {}", organization.handle),
            id: organization.id,
            memberships: "organization_membership",
            link: "is_member_of__organization",
            invitations: "organization_invite",
            invited_to: "is_invited_to__organization",
            roles: "organization_membership_role",
            argument: format!("--organization {}", organization.handle),
        })
    }

    /// Returns the id of a role by its name.
    ///
    /// # Errors
    /// If there is none; the error lists the existing ones.
    pub(super) async fn role(&self, cloud: &Cloud, name: &str) -> Result<i64> {
        #[derive(Deserialize)]
        struct Role {
            id: i64,
            name: String,
        }
        let query = "$select=id,name&$orderby=name asc";
        let roles: Vec<Role> = cloud.rows(self.roles, query).await?;
        match roles.iter().find(|role| role.name == name) {
            Some(role) => Ok(role.id),
            None => {
                let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
                Err(
                    Failure::not_found(format!("{} has no role `{name}`", self.name))
                        .hint(format!("it has {}", names.join(", "))),
                )
            }
        }
    }
}

/// A member as the API returns it.
#[derive(Deserialize)]
struct MembershipRow {
    id: i64,
    #[serde(deserialize_with = "rows::first")]
    user: Option<MemberUser>,
    #[serde(alias = "organization_membership_role")]
    #[serde(alias = "application_membership_role")]
    #[serde(deserialize_with = "rows::role")]
    role: Option<String>,
}

#[derive(Deserialize)]
struct MemberUser {
    id: i64,
    username: String,
    /// Null for users who do not administer an organization that both belong to.
    email: Option<String>,
}

/// A member as it is printed.
#[derive(Serialize)]
struct Member {
    #[serde(skip)]
    membership: i64,
    id: i64,
    username: String,
    email: Option<String>,
    role: Option<String>,
}

async fn members(cloud: &Cloud, of: &MemberOwner, user: Option<&str>) -> Result<Vec<Member>> {
    let mut filter = format!("{} eq {}", of.link, of.id);
    if let Some(user) = user {
        let user = literal(user);
        filter.push_str(&format!(
            " and user/any(u:u/username eq {user} or u/email eq {user})"
        ));
    }
    let query = format!(
        "$select=id&$expand=user($select=id,username,email),{}($select=name)&$filter={filter}&$orderby=id asc",
        of.roles
    );
    let rows: Vec<MembershipRow> = cloud.rows(of.memberships, &query).await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let user = row.user?;
            Some(Member {
                membership: row.id,
                id: user.id,
                username: user.username,
                email: user.email,
                role: row.role,
            })
        })
        .collect())
}

pub(crate) async fn list(cloud: &Cloud, output: &Output, group: &Group) -> Result<()> {
    let of = MemberOwner::group(cloud, group).await?;
    let mut all = members(cloud, &of, None).await?;
    all.sort_by(|one, other| one.username.cmp(&other.username));
    output.rows(
        &all,
        &[
            ("USER", |one| plain(&one.username)),
            ("E-MAIL", |one| plain(&one.email)),
            ("ROLE", |one| plain(&one.role)),
            ("ID", |one| quiet(&one.id.to_string())),
        ],
        &format!(
            "{} is shared with nobody; `fleet invitation create EMAIL {}` invites somebody",
            of.name, of.argument
        ),
    );
    Ok(())
}

/// Finds the member with that user name or e-mail address.
async fn member(cloud: &Cloud, of: &MemberOwner, user: &str) -> Result<Member> {
    let matches = members(cloud, of, Some(user)).await?;
    matches.into_iter().next().ok_or_else(|| {
        Failure::not_found(format!("{} has no member `{user}`", of.name))
            .hint(format!("`fleet members {}` lists them", of.argument))
    })
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: MemberCommand) -> Result<()> {
    match command {
        MemberCommand::Role { user, role, group } => {
            let of = MemberOwner::group(cloud, &group).await?;
            let member = member(cloud, &of, &user).await?;
            let body = json!({ of.roles: of.role(cloud, &role).await? });
            let address = format!("{}({})", of.memberships, member.membership);
            cloud.change(&address, &body).await?;
            // The API reports success even to users who may not change it.
            let after: Vec<Member> = members(cloud, &of, Some(&member.username)).await?;
            let is_done = after
                .iter()
                .any(|it| it.id == member.id && it.role.as_deref() == Some(role.as_str()));
            if !is_done {
                return Err(administrators_alone(&of));
            }
            output.done(
                format!("{} is {role} of {} now", member.username, of.name),
                &json!({ "username": member.username, "id": member.id, "role": role }),
            );
        }
        MemberCommand::Rm { user, group, yes } => {
            let of = MemberOwner::group(cloud, &group).await?;
            let member = member(cloud, &of, &user).await?;
            let what = format!("remove {} from {}", member.username, of.name);
            ask::confirmed(&what, yes)?;
            let address = format!("{}({})", of.memberships, member.membership);
            cloud.delete(&address).await?;
            let left: Vec<Id> = cloud.rows(&address, "$select=id").await?;
            if !left.is_empty() {
                return Err(administrators_alone(&of));
            }
            output.done(
                format!("{} is no longer a member of {}", member.username, of.name),
                &json!({ "removed": { "username": member.username, "id": member.id } }),
            );
        }
    }
    Ok(())
}

fn administrators_alone(of: &MemberOwner) -> Failure {
    Failure::not_allowed(format!("you may not change the members of {}", of.name))
        .hint("administrators of the organization may")
}
