//! Limits on credentials in hostile hands (docs/security.md).

mod audit;
mod first_start;
mod keys;
mod refusals;
mod sessions;
mod sign_ins;
mod streams;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data::{Database, Sql};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::Value;

use crate::harness::Cloud;

/// Executes a statement in the database of a cloud.
async fn execute(cloud: &Cloud, statement: Sql) -> u64 {
    let database = database(cloud).await;
    let rows = database.execute(&statement).await.expect("a statement");
    database.close().await;
    rows
}

async fn database(cloud: &Cloud) -> Database {
    let database = Database::open(&cloud.database, &data::Options::default()).await;
    database.expect("the database")
}

/// Returns the claims of a session token.
fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).expect("a payload");
    let payload = URL_SAFE_NO_PAD.decode(payload).expect("base64");
    serde_json::from_slice(&payload).expect("JSON")
}

/// Returns a token of the same session with different claims, signed like the cloud's own.
async fn saying(cloud: &Cloud, token: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut claims = claims(token);
    change(&mut claims);
    let database = database(cloud).await;
    let mut transaction = database.begin().await.expect("a transaction");
    let secret = data::setting::read(&mut transaction, "session-signing-secret").await;
    let secret = secret.expect("settings").expect("a secret");
    drop(transaction);
    database.close().await;
    let key = EncodingKey::from_secret(secret.as_bytes());
    encode(&Header::default(), &claims, &key).expect("a token")
}
