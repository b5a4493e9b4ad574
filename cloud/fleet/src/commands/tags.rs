//! `tags` and `tag set`, `tag rm`.

use serde_json::json;

use crate::arguments::variables::{TagCommand, TagOwner};
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find;
use crate::odata::literal;
use crate::output::{Output, plain};
use crate::rows::Tag;

/// A device, fleet or release that has tags.
struct Owner {
    /// The resource of the tags.
    resource: &'static str,
    /// Their link to the owner, and its id.
    link: &'static str,
    id: i64,
    name: String,
}

impl Owner {
    async fn load(cloud: &Cloud, owner: &TagOwner) -> Result<Self> {
        let (resource, link, id, name) = match (&owner.device, &owner.fleet, &owner.release) {
            (Some(device), _, _) => {
                let device = find::device(cloud, device).await?;
                let name = format!("the device {}", device.device_name);
                ("device_tag", "device", device.id, name)
            }
            (None, Some(fleet), _) => {
                let fleet = find::fleet(cloud, fleet).await?;
                let name = format!("the fleet {}", fleet.slug);
                ("application_tag", "application", fleet.id, name)
            }
            (None, None, Some(release)) => {
                let release = find::release(cloud, release, None).await?;
                let name = format!("the release {}", release.name());
                ("release_tag", "release", release.id, name)
            }
            (None, None, None) => {
                return Err(Failure::usage("give `--device`, `--fleet` or `--release`"));
            }
        };
        Ok(Owner {
            resource,
            link,
            id,
            name,
        })
    }

    /// Returns the address of one of its tags.
    fn tag(&self, key: &str) -> String {
        let Owner {
            resource, link, id, ..
        } = self;
        format!("{resource}({link}={id},tag_key={})", literal(key))
    }
}

async fn tags(cloud: &Cloud, owner: &Owner) -> Result<Vec<Tag>> {
    let query = format!(
        "$select=tag_key,value&$filter={} eq {}&$orderby=tag_key asc",
        owner.link, owner.id
    );
    cloud.rows(owner.resource, &query).await
}

pub(crate) async fn list(cloud: &Cloud, output: &Output, owner: &TagOwner) -> Result<()> {
    let owner = Owner::load(cloud, owner).await?;
    let tags = tags(cloud, &owner).await?;
    output.rows(
        &tags,
        &[
            ("TAG", |tag| plain(&tag.key)),
            ("VALUE", |tag| plain(&tag.value)),
        ],
        &format!("{} has no tags", owner.name),
    );
    Ok(())
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: TagCommand) -> Result<()> {
    match command {
        TagCommand::Set { key, value, owner } => {
            let owner = Owner::load(cloud, &owner).await?;
            cloud
                .put(&owner.tag(&key), &json!({ "value": value }))
                .await?;
            output.done(
                format!("{} has {key}={value}", owner.name),
                &json!({ owner.link: owner.id, "key": key, "value": value }),
            );
        }
        TagCommand::Rm { key, owner } => {
            let owner = Owner::load(cloud, &owner).await?;
            // The API also reports success for tags that do not exist, which would mislead people.
            if !tags(cloud, &owner).await?.iter().any(|tag| tag.key == key) {
                return Err(Failure::not_found(format!(
                    "{} has no tag `{key}`",
                    owner.name
                )));
            }
            cloud.delete(&owner.tag(&key)).await?;
            output.done(
                format!("{} no longer has {key}", owner.name),
                &json!({ owner.link: owner.id, "removed": key }),
            );
        }
    }
    Ok(())
}
