//! `ssh-keys` and `ssh-key …`: the public keys that give a user access to the hosts of devices.

use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::keys::only;
use super::organizations::myself;
use crate::arguments::people::SshKeyCommand;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::output::{Output, plain, quiet, when};

/// The maximum number of bytes that are read from a file: the cloud accepts 2850 characters.
const MOST_BYTES: u64 = 64 << 10;
/// Text that occurs in OpenSSH's files of private keys.
const SECRET: &str = "PRIVATE KEY";

#[derive(Deserialize, Serialize)]
struct PublicKey {
    id: i64,
    title: String,
    /// In the format of `ssh-keygen -l`, computed here.
    #[serde(skip_deserializing)]
    fingerprint: Option<String>,
    public_key: String,
    created_at: String,
}

async fn keys(cloud: &Cloud) -> Result<Vec<PublicKey>> {
    let query = "$select=id,title,public_key,created_at&$orderby=id asc";
    let mut keys: Vec<PublicKey> = cloud.rows("user__has__public_key", query).await?;
    for key in &mut keys {
        key.fingerprint = fingerprint(&key.public_key);
    }
    Ok(keys)
}

pub(crate) async fn list(cloud: &Cloud, output: &Output) -> Result<()> {
    output.rows(
        &keys(cloud).await?,
        &[
            ("ID", |key| plain(&key.id.to_string())),
            ("TITLE", |key| plain(&key.title)),
            ("KIND", |key| {
                let kind = key.public_key.split_whitespace().next();
                quiet(&kind.map(str::to_owned))
            }),
            ("FINGERPRINT", |key| plain(&key.fingerprint)),
            ("MADE", |key| quiet(&when(&key.created_at))),
        ],
        "you have no SSH keys; `fleet ssh-key add TITLE FILE` adds one",
    );
    Ok(())
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: SshKeyCommand) -> Result<()> {
    match command {
        SshKeyCommand::Add { title, file } => {
            let key = checked(&read(&file)?, &file)?;
            let user = myself(cloud).await?.ok_or_else(|| {
                Failure::not_allowed(
                    "only users have SSH keys, and the credential does not belong to a user",
                )
                .hint(format!("sign in: `fleet login {}`", cloud.url))
            })?;
            if keys(cloud)
                .await?
                .iter()
                .any(|it| it.fingerprint == fingerprint(&key))
            {
                return Err(Failure::failed("you already have that key")
                    .hint("`fleet ssh-keys` lists them"));
            }
            let body = json!({ "user": user, "title": title, "public_key": key });
            let id = cloud.create("user__has__public_key", &body).await?;
            let print = fingerprint(&key);
            output.done(
                format!(
                    "added the key {title} (id {id}, {})",
                    print.as_deref().unwrap_or_default()
                ),
                &json!({ "id": id, "title": title, "fingerprint": print }),
            );
        }
        SshKeyCommand::Rm { key: text } => {
            let mut candidates = keys(cloud).await?;
            candidates.retain(|key| key.title == text || key.id.to_string() == text);
            let key = only(candidates, |key| key.id, &text)?.ok_or_else(|| {
                Failure::not_found(format!("you have no SSH key `{text}`"))
                    .hint("`fleet ssh-keys` lists them")
            })?;
            cloud
                .delete(&format!("user__has__public_key({})", key.id))
                .await?;
            output.done(
                format!("removed the key {}", key.title),
                &json!({ "removed": { "id": key.id, "title": key.title } }),
            );
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<String> {
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().take(MOST_BYTES).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text))
    };
    read.map_err(|error| Failure::unreadable(file, error))?;
    Ok(text)
}

/// Checks that a file is a public key, which is one line; private keys are never sent.
fn checked(text: &str, file: &Path) -> Result<String> {
    let wrong = |what: &str, hint: &str| {
        Err(Failure::usage(format!("{} {what}", file.display())).hint(hint))
    };
    if text.contains(SECRET) {
        return wrong(
            "holds a private key, which was sent nowhere",
            "the public one is in the file beside it that ends with `.pub`",
        );
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match (lines.next(), lines.next()) {
        (Some(line), None) if fingerprint(line).is_some() => Ok(line.to_owned()),
        _ => wrong(
            "is not an SSH public key",
            "it is one line such as `ssh-ed25519 AAAA… name`, as `ssh-keygen` writes into files that end with `.pub`",
        ),
    }
}

/// Returns the fingerprint of a public key, or `None` if the text is not one. The key repeats its type in its data.
fn fingerprint(key: &str) -> Option<String> {
    let mut words = key.split_whitespace();
    let (kind, encoded) = (words.next()?, words.next()?);
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .ok()?;
    let length = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
    let inside = bytes.get(4..)?.get(..usize::try_from(length).ok()?)?;
    let print = base64::engine::general_purpose::STANDARD_NO_PAD.encode(Sha256::digest(&bytes));
    (inside == kind.as_bytes()).then(|| format!("SHA256:{print}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBJcFyuTp8dHqHvAhc5bhJMK2i6KcHKYs8nUkGqPmC5L";

    #[test]
    fn a_public_key_is_one_line_that_says_its_kind_twice() {
        let checked = |text: &str| checked(text, Path::new("id.pub"));
        assert_eq!(
            checked(&format!("{KEY} ann@desk\n")).ok(),
            Some(format!("{KEY} ann@desk"))
        );
        for wrong in [
            "",
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            &KEY.replace("ssh-ed25519", "ssh-rsa"),
            &format!("{KEY}\n{KEY}"),
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb\n",
        ] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
    }
}
