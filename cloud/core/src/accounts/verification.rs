//! Checking the password of an account, as often as the limits of accounts, networks and the machine allow.

use std::net::IpAddr;
use std::time::Duration;

use data::{Sql, SystemPurpose, audit};
use resources::Check;

use crate::answer::Refusal;
use crate::clock::now;
use crate::cloud::Cloud;
use crate::limits::{Account, Network, Quota};

/// Maximum number of characters of a name or password; no account has a longer one.
const MOST: usize = 1000;

/// The account whose password is given.
#[derive(Debug, Clone, Copy)]
pub enum Claim<'a> {
    /// The account with this name or e-mail address.
    Name(&'a str),
    /// The account of this user.
    User(i64),
}

/// A user who gave the right password.
pub struct VerifiedUser {
    pub user: i64,
    /// The secret that the user's session tokens must contain.
    pub secret: String,
}

/// The state of an account whose password is tried.
struct SignInAttempt {
    account: Account,
    user: Option<VerifiedUser>,
    hash: Option<String>,
    /// When the failed attempts are forgotten, in milliseconds; none if there were none lately.
    forgotten: Option<i64>,
    /// Whether the user has an open session that was started at this address. If so, attempts by strangers, from
    /// elsewhere or from the same address, do not lock the user out.
    was_here: bool,
}

/// Returns the user of an account if the password is right.
///
/// # Errors
/// 401 if the password is wrong; 429 after too many attempts on this account or from this address, or if too many
/// requests wait for a hash.
pub async fn verified(
    cloud: &Cloud,
    claim: Claim<'_>,
    password: String,
    from: IpAddr,
) -> Result<VerifiedUser, Refusal> {
    let network = Network::from_address(from);
    let place = cloud.passwords.enter(network).map_err(Refusal::TooMany)?;
    let candidate = candidate(cloud, claim, from).await?;
    let attempts = &cloud.auth.limits.attempts;
    if !candidate.was_here
        && let Some(seconds) = refused_for(&candidate, attempts.account)
    {
        return Err(Refusal::TooMany(seconds));
    }
    attempts
        .begin(&candidate.account, network, candidate.was_here)
        .map_err(Refusal::TooMany)?;
    let right = if password.chars().count() > MOST {
        false
    } else {
        place
            .is(password, candidate.hash)
            .await
            .map_err(Refusal::Fault)?
    };
    drop(place);
    match candidate.user {
        Some(user) if right => {
            let disabled = SystemPurpose::Credentials
                .sql("SELECT id FROM \"user\" WHERE id = ? AND is_disabled = TRUE");
            if cloud
                .database
                .row(&disabled.with(user.user))
                .await?
                .is_some()
            {
                return Err(Refusal::Unauthorized);
            }
            attempts.passed(&candidate.account, network, candidate.was_here);
            if candidate.forgotten.is_some() {
                let forget = SystemPurpose::Credentials
                    .sql("DELETE FROM sign_in_failure WHERE \"user\" = ?")
                    .with(user.user);
                cloud.database.execute(&forget).await?;
            }
            Ok(user)
        }
        user => {
            if let Some(user) = user {
                count_failure(cloud, user.user).await?;
                let address = from.to_canonical().to_string();
                audit::note_failed_sign_in(&cloud.database, user.user, &address, now()).await?;
            }
            Err(Refusal::Unauthorized)
        }
    }
}

/// Returns the hash of a password chosen by a person.
///
/// # Errors
/// 429 if too many requests wait for a hash.
pub async fn hashed(cloud: &Cloud, password: String, from: IpAddr) -> Result<String, Refusal> {
    let place = cloud
        .passwords
        .enter(Network::from_address(from))
        .map_err(Refusal::TooMany)?;
    place.hash(password).await.map_err(Refusal::Fault)
}

async fn candidate(
    cloud: &Cloud,
    claim: Claim<'_>,
    from: IpAddr,
) -> Result<SignInAttempt, Refusal> {
    /// Selects the account of a user by this column.
    macro_rules! account_by {
        ($column:literal) => {
            SystemPurpose::Credentials.sql(concat!(
                "SELECT u.id, u.password, u.jwt_secret, f.forgotten_at, (SELECT COUNT(*) \
                 FROM user_session AS s WHERE s.\"user\" = u.id AND s.address = ? AND s.expires_at > ?) FROM \"user\" AS u \
                 LEFT JOIN sign_in_failure AS f ON f.\"user\" = u.id WHERE ",
                $column,
                " = ?"
            ))
        };
    }
    let address = from.to_canonical().to_string();
    let at_address = |find: Sql| find.with(address).with(now());
    let (find, name) = match claim {
        Claim::User(user) => (at_address(account_by!("u.id")).with(user), String::new()),
        Claim::Name(username) => {
            // Names and addresses are stored in one form (docs/spec/cloud.md#model-people); no user has a name without
            // one.
            let (find, form) = if username.contains('@') {
                (account_by!("u.email"), Check::Email)
            } else {
                (account_by!("u.username"), Check::Username)
            };
            let name = if username.chars().count() > MOST {
                String::new()
            } else {
                form.apply(username, &cloud.configuration.branding)
                    .unwrap_or_default()
                    .into_owned()
            };
            (at_address(find).with(name.as_str()), name)
        }
    };
    let Some(row) = cloud.database.row(&find).await? else {
        return Ok(SignInAttempt {
            account: Account::named(&name),
            user: None,
            hash: None,
            forgotten: None,
            was_here: false,
        });
    };
    let user = row.id(0)?;
    Ok(SignInAttempt {
        account: Account::User(user),
        user: Some(VerifiedUser {
            user,
            secret: row.text(2)?.unwrap_or_default(),
        }),
        hash: row.text(1)?,
        forgotten: row.number(3)?,
        was_here: row.id(4)? > 0,
    })
}

/// Returns in how many seconds the account may be tried again, from any address, if it may not be tried now.
fn refused_for(candidate: &SignInAttempt, quota: Quota) -> Option<u64> {
    let ahead = milliseconds(quota.ahead()) - milliseconds(quota.period);
    let wait = candidate.forgotten? - now() - ahead;
    let wait = u64::try_from(wait).ok().filter(|wait| *wait > 0)?;
    Some(wait.div_ceil(1000))
}

/// Counts a wrong password for its account, for all replicas.
async fn count_failure(cloud: &Cloud, user: i64) -> Result<(), Refusal> {
    let period = milliseconds(cloud.auth.limits.attempts.account.period);
    let now = now();
    let count = SystemPurpose::Credentials.sql(
        "INSERT INTO sign_in_failure (\"user\", forgotten_at) SELECT id, ? FROM \"user\" WHERE id = ? \
         ON CONFLICT (\"user\") DO UPDATE SET forgotten_at = ? + CASE \
         WHEN sign_in_failure.forgotten_at > ? THEN sign_in_failure.forgotten_at ELSE ? END",
    )
    .with(now + period)
    .with(user)
    .with(period)
    .with(now)
    .with(now);
    cloud.database.execute(&count).await?;
    Ok(())
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
