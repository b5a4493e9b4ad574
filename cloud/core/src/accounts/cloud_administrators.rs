//! Administrators of the cloud: a mark on users, which the first start gives to the one whom it makes. It gives no right
//! on rows of tenants.

use data::SystemPurpose;

use crate::answer::Refusal;
use crate::cloud::Cloud;
use crate::credential::{Credential, Identity, STALE};

/// Whether it is an administrator of the cloud who asks, signed in.
///
/// # Errors
/// Where the database fails.
pub async fn is_one(cloud: &Cloud, identity: &Identity) -> Result<bool, Refusal> {
    let Credential::Session(claims) = &identity.credential else {
        return Ok(false);
    };
    let administrator = SystemPurpose::Administration
        .sql("SELECT id FROM \"user\" WHERE id = ? AND is_cloud_administrator = TRUE");
    let administrator = cloud.database.row(&administrator.with(claims.id)).await?;
    Ok(administrator.is_some())
}

/// The administrator of the cloud who just signed in.
///
/// # Errors
/// 401 where it is somebody else, another credential, or the sign-in is a while ago.
pub async fn administrator(cloud: &Cloud, identity: &Identity) -> Result<i64, Refusal> {
    match &identity.credential {
        Credential::Session(claims) if is_one(cloud, identity).await? => {
            if claims.fresh() {
                Ok(claims.id)
            } else {
                Err(Refusal::UnauthorizedSaying(STALE))
            }
        }
        _ => Err(Refusal::Unauthorized),
    }
}
