//! `keys …`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::keys::KeysCommand;
use crate::cloud::Cloud;
use crate::failure::{Failure, Kind, Result};
use crate::find;
use crate::output::{Output, plain, quiet, when};
use crate::rows::Id;

#[derive(Deserialize, Serialize)]
struct ApiKey {
    id: i64,
    name: Option<String>,
    description: Option<String>,
    expiry_date: Option<String>,
    created_at: String,
    scope: Option<String>,
    last_used_at: Option<String>,
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: KeysCommand) -> Result<()> {
    match command {
        KeysCommand::List { fleet } => {
            let actor = match find::optional_fleet(cloud, fleet.as_deref()).await? {
                Some(fleet) => fleet.actor.id,
                None => myself(cloud).await?,
            };
            list(cloud, output, actor).await
        }
        KeysCommand::Create {
            name,
            description,
            expires,
            scope,
            fleet,
        } => {
            let mut body = described(Some(name), description, expires)?;
            if let Some(scope) = scope {
                body["scope"] = json!(scope);
            }
            if let Some(fleet) = find::optional_fleet(cloud, fleet.as_deref()).await? {
                body["applicationId"] = json!(fleet.id);
            }
            let made: Result<String> = cloud.post("/api-key/user/full", &body).await;
            let key = made.map_err(|failure| match failure.kind {
                Kind::NotAllowed => failure.hint(format!(
                    "you can create keys only within 20 minutes of signing in with a password: `fleet login {}`",
                    cloud.url
                )),
                _ => failure,
            })?;
            shown(output, &key);
            Ok(())
        }
        KeysCommand::Provisioning {
            fleet,
            name,
            description,
            expires,
        } => {
            let fleet = find::fleet(cloud, &fleet).await?;
            let path = format!("/api-key/application/{}/provisioning", fleet.id);
            let body = described(name, description, expires)?;
            let key: String = cloud.post(&path, &body).await?;
            shown(output, &key);
            output.note(format!(
                "`fleet config {}` writes a whole config.json, with a key in it",
                fleet.slug
            ));
            Ok(())
        }
        KeysCommand::Rm { key } => remove(cloud, output, &key).await,
    }
}

/// Prints only the key to standard output, so `KEY=$(fleet keys create ci)` works.
fn shown(output: &Output, key: &str) {
    output.note("this key is shown once; keep it safe:");
    if output.json {
        output.value(&json!({ "key": key }))
    } else {
        output.text(key)
    }
}

fn described(
    name: Option<String>,
    description: Option<String>,
    expires: Option<String>,
) -> Result<Value> {
    let expires = expires.as_deref().map(time).transpose()?;
    Ok(json!({ "name": name, "description": description, "expiryDate": expires }))
}

/// Converts a day or a time to the API's format.
fn time(text: &str) -> Result<String> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(time.to_string());
    }
    match text.parse::<jiff::civil::Date>() {
        Ok(day) => Ok(format!("{day}T00:00:00.000Z")),
        Err(error) => Err(Failure::usage(format!("`{text}` is not a date"))
            .because(error)
            .hint("write 2027-01-31, or 2027-01-31T12:00:00Z")),
    }
}

async fn myself(cloud: &Cloud) -> Result<i64> {
    Ok(cloud.get::<Id>("/actor/v1/whoami").await?.id)
}

async fn keys_where(cloud: &Cloud, filter: &str) -> Result<Vec<ApiKey>> {
    let fields = "id,name,description,expiry_date,created_at,scope,last_used_at";
    let query = format!("$select={fields}&$filter={filter}&$orderby=id asc");
    cloud.rows("api_key", &query).await
}

async fn list(cloud: &Cloud, output: &Output, actor: i64) -> Result<()> {
    let keys = keys_where(cloud, &format!("is_of__actor eq {actor}")).await?;
    output.rows(
        &keys,
        &[
            ("ID", |key| plain(&key.id.to_string())),
            ("NAME", |key| match &key.name {
                Some(name) => plain(name),
                None => quiet(&"(no name)".to_owned()),
            }),
            ("SCOPE", |key| {
                plain(&key.scope.as_deref().unwrap_or("all").to_owned())
            }),
            ("MADE", |key| quiet(&when(&key.created_at))),
            ("USED", |key| quiet(&when_or_never(&key.last_used_at))),
            ("EXPIRES", |key| quiet(&when_or_never(&key.expiry_date))),
            ("DESCRIPTION", |key| quiet(&key.description)),
        ],
        "there are no keys",
    );
    Ok(())
}

fn when_or_never(time: &Option<String>) -> String {
    time.as_deref().map_or_else(|| "never".to_owned(), when)
}

/// Returns the key that a text names, if any.
///
/// # Errors
/// If it names several.
pub(super) fn only<T>(mut keys: Vec<T>, id: impl Fn(&T) -> i64, text: &str) -> Result<Option<T>> {
    if keys.len() > 1 {
        let ids: Vec<String> = keys.iter().map(|key| id(key).to_string()).collect();
        let message = format!(
            "`{text}` matches several keys, with the ids {}",
            ids.join(", ")
        );
        return Err(Failure::usage(message).hint("choose one by its id"));
    }
    Ok(keys.pop())
}

async fn remove(cloud: &Cloud, output: &Output, text: &str) -> Result<()> {
    let name = crate::odata::literal(text);
    let filter = match text.parse::<i64>() {
        Ok(id) => format!("id eq {id} or name eq {name}"),
        Err(_) => format!("name eq {name}"),
    };
    let keys = keys_where(cloud, &filter).await?;
    let key = only(keys, |key| key.id, text)?.ok_or_else(|| {
        Failure::not_found(format!("there is no key `{text}`")).hint("`fleet keys list` lists them")
    })?;
    cloud.delete(&format!("api_key({})", key.id)).await?;
    let name = key.name.clone().unwrap_or_else(|| key.id.to_string());
    output.done(
        format!("deleted the key {name}"),
        &json!({ "deleted": { "id": key.id, "name": key.name } }),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_expires_on_a_day_or_at_a_time() {
        for (text, expected) in [
            ("2027-01-31", Some("2027-01-31T00:00:00.000Z")),
            ("2027-01-31T12:00:00Z", Some("2027-01-31T12:00:00Z")),
            ("tomorrow", None),
        ] {
            assert_eq!(time(text).ok().as_deref(), expected, "{text}");
        }
    }
}
