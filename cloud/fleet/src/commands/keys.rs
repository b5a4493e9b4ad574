//! `keys …`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::KeysCommand;
use crate::cloud::Cloud;
use crate::failure::{Failure, Kind, Result};
use crate::find;
use crate::output::{Mood, Output, when};

#[derive(Deserialize, Serialize)]
struct Key {
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
            let actor = match fleet {
                Some(fleet) => find::fleet(cloud, &fleet).await?.actor.id,
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
            if let (Some(scope), Some(body)) = (scope, body.as_object_mut()) {
                body.insert("scope".to_owned(), json!(scope.word()));
            }
            if let (Some(fleet), Some(body)) = (fleet, body.as_object_mut()) {
                let fleet = find::fleet(cloud, &fleet).await?;
                body.insert("applicationId".to_owned(), json!(fleet.id));
            }
            let made: Result<String> = cloud.post("/api-key/user/full", &body).await;
            let key = made.map_err(|failure| match failure.kind {
                Kind::NotAllowed => failure.hint(format!(
                    "keys are made within 20 minutes of signing in with a password: `fleet login {}`",
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

/// The key alone on standard output, so that `KEY=$(fleet keys create ci)` works.
fn shown(output: &Output, key: &str) {
    output.note("this key is shown once; keep it:");
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
    let expires = match expires {
        Some(text) => Some(time(&text)?),
        None => None,
    };
    Ok(json!({ "name": name, "description": description, "expiryDate": expires }))
}

/// A day or a time, as the API has it.
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
    #[derive(Deserialize)]
    struct Whoami {
        id: i64,
    }
    Ok(cloud.get::<Whoami>("/actor/v1/whoami").await?.id)
}

async fn list(cloud: &Cloud, output: &Output, actor: i64) -> Result<()> {
    let filter = format!("is_of__actor eq {actor}");
    let options = [
        (
            "$select",
            "id,name,description,expiry_date,created_at,scope,last_used_at",
        ),
        ("$filter", &filter),
        ("$orderby", "id asc"),
    ];
    let keys: Vec<Key> = cloud.rows("api_key", &options).await?;
    output.rows(
        &keys,
        &[
            ("ID", |key| (key.id.to_string(), Mood::Plain)),
            ("NAME", |key| match &key.name {
                Some(name) => (name.clone(), Mood::Plain),
                None => ("(no name)".to_owned(), Mood::Quiet),
            }),
            ("SCOPE", |key| {
                let scope = key.scope.clone();
                (scope.unwrap_or_else(|| "all".to_owned()), Mood::Plain)
            }),
            ("MADE", |key| (when(&key.created_at), Mood::Quiet)),
            ("USED", |key| {
                let used = key.last_used_at.as_deref().map(when);
                (used.unwrap_or_else(|| "never".to_owned()), Mood::Quiet)
            }),
            ("EXPIRES", |key| {
                let until = key.expiry_date.as_deref().map(when);
                (until.unwrap_or_else(|| "never".to_owned()), Mood::Quiet)
            }),
            ("DESCRIPTION", |key| {
                (key.description.clone().unwrap_or_default(), Mood::Quiet)
            }),
        ],
        "there are no keys",
    );
    Ok(())
}

async fn remove(cloud: &Cloud, output: &Output, text: &str) -> Result<()> {
    let filter = match text.parse::<i64>() {
        Ok(id) => format!("id eq {id} or name eq {}", crate::odata::literal(text)),
        Err(_) => format!("name eq {}", crate::odata::literal(text)),
    };
    let options = [
        (
            "$select",
            "id,name,description,expiry_date,created_at,scope,last_used_at",
        ),
        ("$filter", &filter),
    ];
    let keys: Vec<Key> = cloud.rows("api_key", &options).await?;
    let key = match keys.as_slice() {
        [key] => key,
        [] => {
            return Err(Failure::not_found(format!("there is no key `{text}`"))
                .hint("`fleet keys list` lists them"));
        }
        several => {
            let ids: Vec<String> = several.iter().map(|key| key.id.to_string()).collect();
            return Err(Failure::usage(format!(
                "`{text}` matches several keys, with the ids {}",
                ids.join(", ")
            ))
            .hint("choose one by its id"));
        }
    };
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
