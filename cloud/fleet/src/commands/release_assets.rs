//! `release-asset …`: files attached to releases.

mod download;
mod upload;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::releases;
use crate::arguments::assets::AssetCommand;
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find::Release;
use crate::odata::literal;
use crate::output::{Output, plain, quiet, size, when};
use download::download;
use upload::{UploadFile, upload};

/// The path of the cloud's files, on whatever host the cloud says they are.
const FILES: &str = "/release-asset/v1/";

/// A file as the API returns it.
#[derive(Deserialize)]
struct AssetRow {
    id: i64,
    asset_key: String,
    asset: Option<StoredFile>,
    created_at: String,
}

#[derive(Deserialize)]
struct StoredFile {
    filename: String,
    href: String,
    content_type: String,
    size: u64,
}

/// A file as it is printed.
#[derive(Serialize)]
struct Asset {
    id: i64,
    key: String,
    file: Option<String>,
    content_type: Option<String>,
    /// Its size in bytes.
    size: Option<u64>,
    created_at: String,
}

impl From<&AssetRow> for Asset {
    fn from(row: &AssetRow) -> Self {
        let stored = row.asset.as_ref();
        Asset {
            id: row.id,
            key: row.asset_key.clone(),
            file: stored.map(|stored| stored.filename.clone()),
            content_type: stored.map(|stored| stored.content_type.clone()),
            size: stored.map(|stored| stored.size),
            created_at: row.created_at.clone(),
        }
    }
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: AssetCommand) -> Result<()> {
    match command {
        AssetCommand::List(release) => {
            let release = releases::found(cloud, &release).await?;
            list(cloud, output, &release).await
        }
        AssetCommand::Upload {
            release,
            file,
            key,
            overwrite,
        } => {
            let file = UploadFile::open(&file)?;
            let release = releases::found(cloud, &release).await?;
            let key = key.unwrap_or_else(|| file.name.clone());
            upload(cloud, output, &release, file, &key, overwrite).await
        }
        AssetCommand::Download {
            release,
            key,
            output: to,
            overwrite,
        } => {
            let release = releases::found(cloud, &release).await?;
            download(cloud, output, &release, &key, to, overwrite).await
        }
        AssetCommand::Delete { release, key, yes } => {
            let release = releases::found(cloud, &release).await?;
            let row = found(cloud, &release, &key).await?;
            let what = format!("delete the file {key} of the release {}", release.name());
            ask::confirmed(&what, yes)?;
            cloud.delete(&format!("release_asset({})", row.id)).await?;
            output.done(
                format!("deleted the file {key} of the release {}", release.name()),
                &json!({ "deleted": { "id": row.id, "key": key }, "release": release.commit }),
            );
            Ok(())
        }
    }
}

/// The fields of an [`AssetRow`].
const FIELDS: &str = "$select=id,asset_key,asset,created_at";

async fn list(cloud: &Cloud, output: &Output, release: &Release) -> Result<()> {
    let query = format!(
        "{FIELDS}&$filter=release eq {}&$orderby=asset_key asc",
        release.id
    );
    let rows: Vec<AssetRow> = cloud.rows("release_asset", &query).await?;
    let assets: Vec<Asset> = rows.iter().map(Asset::from).collect();
    output.rows(
        &assets,
        &[
            ("KEY", |asset| plain(&asset.key)),
            ("FILE", |asset| match &asset.file {
                Some(file) => plain(file),
                None => quiet(&"(none)".to_owned()),
            }),
            ("SIZE", |asset| plain(&asset.size.map(size))),
            ("KIND", |asset| quiet(&asset.content_type)),
            ("MADE", |asset| quiet(&when(&asset.created_at))),
        ],
        &format!("no files are attached to the release {}", release.name()),
    );
    Ok(())
}

/// Returns the row of a key, if there is one.
async fn row(cloud: &Cloud, release: &Release, key: &str) -> Result<Option<AssetRow>> {
    let address = format!(
        "release_asset(release={},asset_key={})",
        release.id,
        literal(key)
    );
    cloud.row(&address, FIELDS).await
}

async fn found(cloud: &Cloud, release: &Release, key: &str) -> Result<AssetRow> {
    row(cloud, release, key).await?.ok_or_else(|| {
        Failure::not_found(format!(
            "there is no file `{key}` attached to the release {}",
            release.name()
        ))
        .hint("`fleet release-asset list` lists the attached files")
    })
}

/// Returns the path of an address of the cloud's: requests go to the cloud of the session, whatever host it names.
fn on_the_cloud(address: &str) -> Result<&str> {
    match address.find(FILES) {
        Some(at) => Ok(&address[at..]),
        None => Err(Failure::failed(format!(
            "the cloud returned the address `{address}`, which is not that of a file attached to a release"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cloud_chooses_no_other_host() {
        for (address, expected) in [
            (
                "https://elsewhere.example/release-asset/v1/7?key=a",
                Some("/release-asset/v1/7?key=a"),
            ),
            ("https://elsewhere.example/steal", None),
            ("", None),
        ] {
            assert_eq!(on_the_cloud(address).ok(), expected, "{address}");
        }
    }
}
