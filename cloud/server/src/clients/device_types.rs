//! `/device-types/v1`: the catalogue of boards, for clients that do not use the data API.

use axum::extract::{Path, Request, State};
use cloud_core::answer::{Answer, Refusal, ok};
use cloud_core::cloud::{Cloud, SharedCloud};
use cloud_core::credential::Identity;
use data::SystemPurpose;
use data::query::{self, Caller, ReadStatement};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// `GET /device-types/v1`
pub(crate) async fn all(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    cloud.auth.charge(&Identity::guest(), &parts)?;
    let rows: Vec<Value> = catalogue(&cloud)
        .await?
        .into_iter()
        .map(|board| board.description)
        .collect();
    Ok(ok(&Value::Array(rows)))
}

/// `GET /device-types/v1/:slug`, by any of its names.
pub(crate) async fn one(
    State(cloud): State<SharedCloud>,
    Path(slug): Path<String>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    cloud.auth.charge(&Identity::guest(), &parts)?;
    Ok(ok(&board(&cloud, &slug).await?.description))
}

/// `GET /device-types/v1/:slug/images/:version/download-size`: the size of the images of an operating system, from its
/// public fleet for these boards. `latest` is its latest final version.
pub(crate) async fn download_size(
    State(cloud): State<SharedCloud>,
    Path((slug, version)): Path<(String, String)>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    cloud.auth.charge(&Identity::guest(), &parts)?;
    let one = board(&cloud, &slug).await?;
    let version: String = version.chars().take(LONGEST_VERSION).collect();
    let missing = || {
        Refusal::Missing(format!(
            "there is no image of version {version} for {}",
            one.slug
        ))
    };
    let sizes = sizes_of(&cloud, &one.slug, &version).await?;
    // Images that are still being pushed have no size yet.
    let sizes: Option<Vec<u64>> = sizes.ok_or_else(missing)?.into_iter().collect();
    let sizes = sizes
        .filter(|sizes| !sizes.is_empty())
        .ok_or_else(missing)?;
    let size: u64 = sizes.into_iter().fold(0, u64::saturating_add);
    Ok(ok(&json!({ "size": size })))
}

/// Returns the sizes of the images of a release, if there is one that everybody may read, by means of the data API.
async fn sizes_of(
    cloud: &Cloud,
    slug: &str,
    version: &str,
) -> Result<Option<Vec<Option<u64>>>, Refusal> {
    let which = match version {
        "latest" => "is_final%20eq%20true".to_owned(),
        version => {
            let version = version.replace('\'', "''");
            let version = utf8_percent_encode(&version, NON_ALPHANUMERIC);
            format!("raw_version%20eq%20%27{version}%27")
        }
    };
    let slug = utf8_percent_encode(slug, NON_ALPHANUMERIC);
    let query = format!(
        "$select=id&$top=1&$orderby=semver_major%20desc,semver_minor%20desc,semver_patch%20desc,revision%20desc\
         &$filter={which}%20and%20status%20eq%20%27success%27%20and%20is_invalidated%20eq%20false\
         %20and%20belongs_to__application/any(a:a/is_host%20eq%20true\
         %20and%20a/is_for__device_type/any(t:t/slug%20eq%20%27{slug}%27))\
         &$expand=release_image($select=id;$expand=image($select=image_size))"
    );
    let request = odata::parse("/release", Some(&query))?;
    let guest = Caller::guest();
    let setting = cloud.setting(&guest);
    let ReadStatement::Records(select) = query::read(&setting, &request)? else {
        return Ok(None);
    };
    let rows = cloud.database.texts(&select).await?;
    let Some(row) = rows.into_iter().flatten().next() else {
        return Ok(None);
    };
    let row: Value = serde_json::from_str(&row).map_err(|error| Refusal::Fault(error.into()))?;
    let images = row["release_image"].as_array().into_iter().flatten();
    let sizes = images.map(|one| one["image"][0]["image_size"].as_str()?.parse().ok());
    Ok(Some(sizes.collect()))
}

async fn board(cloud: &Cloud, slug: &str) -> Result<Board, Refusal> {
    let boards = catalogue(cloud).await?;
    let board = boards
        .into_iter()
        .find(|one| one.slug == slug || one.aliases.iter().any(|alias| alias == slug));
    board.ok_or_else(|| {
        let slug: String = slug.chars().take(100).collect();
        Refusal::Missing(format!("there is no device type `{slug}`"))
    })
}

/// Maximum number of characters of a requested version.
const LONGEST_VERSION: usize = 255;

struct Board {
    slug: String,
    aliases: Vec<String>,
    /// In the format that clients expect.
    description: Value,
}

async fn catalogue(cloud: &Cloud) -> Result<Vec<Board>, Refusal> {
    let select = SystemPurpose::Catalogue.sql(
        "SELECT t.id, t.slug, t.name, c.slug, t.logo, l.is_referenced_by__alias FROM device_type AS t \
         JOIN cpu_architecture AS c ON c.id = t.is_of__cpu_architecture \
         LEFT JOIN device_type_alias AS l ON l.device_type = t.id \
         ORDER BY t.slug, l.is_referenced_by__alias",
    );
    let mut boards: Vec<Board> = Vec::new();
    for row in cloud.database.rows(&select).await? {
        let slug = row.some_text(1)?;
        if boards.last().is_none_or(|last| last.slug != slug) {
            let description = json!({
                "id": row.id(0)?, "slug": slug, "name": row.some_text(2)?, "arch": row.some_text(3)?,
                "state": "RELEASED", "logo": row.text(4)?, "aliases": [],
            });
            boards.push(Board {
                slug,
                aliases: Vec::new(),
                description,
            });
        }
        if let (Some(board), Some(alias)) = (boards.last_mut(), row.text(5)?) {
            board.aliases.push(alias);
        }
    }
    for board in &mut boards {
        board.description["aliases"] = json!(board.aliases);
    }
    Ok(boards)
}
