//! New passwords of users.

use std::net::{IpAddr, SocketAddr};

use data::SystemPurpose;
use data::audit::{self, Event};

use super::sessions::{self, SessionOrigin};
use super::verification::{self, Claim, VerifiedUser, verified};
use crate::answer::Refusal;
use crate::clock::now;
use crate::cloud::Cloud;
use crate::password;
use crate::random::random_text;

/// A change of password by a user who knows the current one.
pub struct PasswordChange {
    pub current: String,
    pub new: String,
    /// Whether the user's named keys end as well.
    pub end_keys: bool,
}

/// Sets a new password for a user who knows the current one, ends all sessions, and returns the token of a new one.
///
/// # Errors
/// 401 if the current password is wrong; 400 if the new one is unacceptable; 429 as for [`verified`].
pub async fn password_changed(
    cloud: &Cloud,
    user: i64,
    change: PasswordChange,
    from: SocketAddr,
    beginning: SessionOrigin,
) -> Result<String, Refusal> {
    verified(cloud, Claim::User(user), change.current, from.ip()).await?;
    let hash = hashed(cloud, change.new, from.ip()).await?;
    let secret = random_text(16).map_err(Refusal::Fault)?;
    let mut transaction = cloud.database.begin().await?;
    let update = SystemPurpose::Accounts
        .sql("UPDATE \"user\" SET password = ?, jwt_secret = ?, modified_at = ? WHERE id = ?")
        .with(hash)
        .with(secret.as_str())
        .with(now())
        .with(user);
    transaction.execute(&update).await?;
    let event = Event {
        verb: "new-password",
        resource: "user",
        ids: &[user],
        fields: None,
    };
    audit::note(&mut transaction, None, event, now()).await?;
    let sessions = SystemPurpose::Accounts
        .sql("SELECT id FROM user_session WHERE \"user\" = ?")
        .with(user);
    let sessions = transaction.ids(&sessions).await?;
    let keys = SystemPurpose::Accounts.sql(
        "SELECT k.id FROM api_key AS k JOIN \"user\" AS u ON u.actor = k.is_of__actor WHERE u.id = ?",
    );
    let keys = if change.end_keys {
        transaction.ids(&keys.with(user)).await?
    } else {
        Vec::new()
    };
    let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Accounts);
    writer.remove("user_session", &sessions).await?;
    writer.remove("api_key", &keys).await?;
    let user = VerifiedUser { user, secret };
    let token = sessions::begin(cloud, &mut transaction, &user, beginning).await?;
    transaction.commit().await?;
    Ok(token)
}

/// Returns the hash of a password chosen by a person.
///
/// # Errors
/// 400 if the password is unacceptable; 429 if too many requests wait for a hash.
pub async fn hashed(cloud: &Cloud, password: String, from: IpAddr) -> Result<String, Refusal> {
    if let Some(why) = password::fault(&password) {
        return Err(Refusal::Wrong(why));
    }
    verification::hashed(cloud, password, from).await
}
