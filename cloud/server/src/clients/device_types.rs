//! `/device-types/v1`: the catalogue of boards, for clients that know no data API.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use data::sql;
use http::StatusCode;
use serde_json::{Value, json};

use crate::answer::{Refusal, json as json_answer};
use crate::cloud::{Cloud, Shared};
use crate::device::nobody;

/// `GET /device-types/v1`
pub(crate) async fn all(
    State(cloud): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    cloud.charge(&nobody(), &parts)?;
    let told: Vec<Value> = catalogue(&cloud)
        .await?
        .into_iter()
        .map(|one| one.told)
        .collect();
    Ok(json_answer(StatusCode::OK, Value::Array(told).to_string()))
}

/// `GET /device-types/v1/:slug`, by any of its names.
pub(crate) async fn one(
    State(cloud): State<Shared>,
    Path(slug): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    cloud.charge(&nobody(), &parts)?;
    let told = found(&cloud, &slug).await?.told;
    Ok(json_answer(StatusCode::OK, told.to_string()))
}

/// `GET /device-types/v1/:slug/images/:version/download-size`: this cloud has no images of operating systems.
pub(crate) async fn download_size(
    State(cloud): State<Shared>,
    Path((slug, version)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    cloud.charge(&nobody(), &parts)?;
    let one = found(&cloud, &slug).await?;
    let version: String = version.chars().take(40).collect();
    Err(Refusal::Missing(format!(
        "there is no image of version {version} for {}",
        one.slug
    )))
}

async fn found(cloud: &Cloud, slug: &str) -> Result<Board, Refusal> {
    let boards = catalogue(cloud).await?;
    let found = boards
        .into_iter()
        .find(|one| one.slug == slug || one.aliases.iter().any(|alias| alias == slug));
    found.ok_or_else(|| {
        let slug: String = slug.chars().take(100).collect();
        Refusal::Missing(format!("there is no device type `{slug}`"))
    })
}

struct Board {
    slug: String,
    aliases: Vec<String>,
    told: Value,
}

async fn catalogue(cloud: &Cloud) -> Result<Vec<Board>, Refusal> {
    let select = sql(
        "SELECT t.id, t.slug, t.name, c.slug, t.logo, l.is_referenced_by__alias FROM device_type AS t \
         JOIN cpu_architecture AS c ON c.id = t.is_of__cpu_architecture \
         LEFT JOIN device_type_alias AS l ON l.device_type = t.id \
         ORDER BY t.slug, l.is_referenced_by__alias",
    );
    let mut boards: Vec<Board> = Vec::new();
    for row in cloud.database.rows(&select).await? {
        let slug = row.some_text(1)?;
        if boards.last().is_none_or(|last| last.slug != slug) {
            let told = json!({
                "id": row.id(0)?, "slug": slug, "name": row.some_text(2)?, "arch": row.some_text(3)?,
                "state": "RELEASED", "logo": row.text(4)?, "aliases": [],
            });
            boards.push(Board {
                slug,
                aliases: Vec::new(),
                told,
            });
        }
        if let (Some(board), Some(alias)) = (boards.last_mut(), row.text(5)?) {
            board.aliases.push(alias);
        }
    }
    for board in &mut boards {
        board.told["aliases"] = json!(board.aliases);
    }
    Ok(boards)
}
