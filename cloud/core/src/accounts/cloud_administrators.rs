//! Administrators of the cloud: a mark on users. The first start sets it on the user that it creates. It grants no
//! rights on rows of tenants.

use data::SystemPurpose;

use crate::answer::Refusal;
use crate::cloud::Cloud;
use crate::credential::{Credential, Identity, STALE};

/// Whether the caller is an administrator of the cloud who is signed in.
///
/// # Errors
/// If the database fails.
pub async fn is_one(cloud: &Cloud, identity: &Identity) -> Result<bool, Refusal> {
    let Credential::Session(claims) = &identity.credential else {
        return Ok(false);
    };
    let administrator = SystemPurpose::Administration
        .sql("SELECT id FROM \"user\" WHERE id = ? AND is_cloud_administrator = TRUE");
    let administrator = cloud.database.row(&administrator.with(claims.id)).await?;
    Ok(administrator.is_some())
}

/// Returns the administrator of the cloud, who has just signed in.
///
/// # Errors
/// 401 if the caller is somebody else, uses another credential, or signed in too long ago.
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
