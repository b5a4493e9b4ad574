//! Style, scripts and the icon: part of the program, at addresses that change with what they hold, so that
//! browsers keep them for ever.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::response::IntoResponse;
use axum::routing::get;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use super::problem::{PageError, PageResult};
use super::state::DashboardState;

/// A file of the dashboard.
pub(crate) struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    /// Of what it holds.
    hash: String,
}

impl Asset {
    fn new(name: &'static str, kind: &'static str, bytes: &'static [u8]) -> Self {
        let hash = hex::encode(Sha256::digest(bytes));
        Asset {
            name,
            kind,
            bytes,
            hash: hash.get(..16).unwrap_or_default().to_owned(),
        }
    }

    /// Where it is.
    pub(crate) fn address(&self) -> String {
        format!("/dashboard/assets/{}/{}", self.hash, self.name)
    }
}

/// All of them.
pub(crate) struct Assets {
    pub(crate) style: Asset,
    /// Before anything is drawn: light or dark.
    pub(crate) theme: Asset,
    pub(crate) script: Asset,
    /// Of the log of a device.
    pub(crate) log: Asset,
    pub(crate) htmx: Asset,
    pub(crate) idiomorph: Asset,
    pub(crate) icon: Asset,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All of them.
pub(crate) static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    style: Asset::new(
        "dashboard.css",
        "text/css; charset=utf-8",
        include_bytes!("assets/dashboard.css"),
    ),
    theme: Asset::new("theme.js", SCRIPT, include_bytes!("assets/theme.js")),
    script: Asset::new(
        "dashboard.js",
        SCRIPT,
        include_bytes!("assets/dashboard.js"),
    ),
    log: Asset::new("log.js", SCRIPT, include_bytes!("assets/log.js")),
    htmx: Asset::new(
        "htmx.min.js",
        SCRIPT,
        include_bytes!("assets/vendor/htmx.min.js"),
    ),
    idiomorph: Asset::new(
        "idiomorph.min.js",
        SCRIPT,
        include_bytes!("assets/vendor/idiomorph.min.js"),
    ),
    icon: Asset::new(
        "icon.svg",
        "image/svg+xml",
        include_bytes!("assets/icon.svg"),
    ),
});

impl Assets {
    fn all(&self) -> [&Asset; 7] {
        [
            &self.style,
            &self.theme,
            &self.script,
            &self.log,
            &self.htmx,
            &self.idiomorph,
            &self.icon,
        ]
    }
}

pub(super) fn routes() -> Router<DashboardState> {
    Router::new().route("/assets/{hash}/{name}", get(serve))
}

async fn serve(Path((hash, name)): Path<(String, String)>, headers: HeaderMap) -> PageResult {
    let asset = ASSETS
        .all()
        .into_iter()
        .find(|asset| asset.name == name && asset.hash == hash)
        .ok_or_else(PageError::nothing_here)?;
    let tag = format!("\"{}\"", asset.hash);
    let is_current = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|is_current| is_current.as_bytes() == tag.as_bytes());
    let mut response = if is_current {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, asset.kind)], asset.bytes).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}
