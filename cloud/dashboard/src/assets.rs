//! Style sheets, scripts and the icon. They are part of the program, at addresses that change with their content, so
//! browsers can cache them indefinitely.

use std::sync::OnceLock;

use axum::extract::Path;
use axum::response::IntoResponse;
use axum::routing::get;
use http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};

use super::page_error::{PageError, PageResult};
use super::state::Routes;

/// A file of the dashboard.
pub(crate) struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    /// The hash of its content, computed on the first request.
    hash: OnceLock<String>,
}

impl Asset {
    const fn new(name: &'static str, kind: &'static str, bytes: &'static [u8]) -> Self {
        let hash = OnceLock::new();
        Asset {
            name,
            kind,
            bytes,
            hash,
        }
    }

    fn hash(&self) -> &str {
        self.hash.get_or_init(|| {
            let mut hash = hex::encode(Sha256::digest(self.bytes));
            hash.truncate(16);
            hash
        })
    }

    /// Returns its address.
    pub(crate) fn address(&self) -> String {
        format!("/dashboard/assets/{}/{}", self.hash(), self.name)
    }
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";

pub(crate) static STYLE: Asset =
    Asset::new("dashboard.css", CSS, include_bytes!("assets/dashboard.css"));
pub(crate) static ICON: Asset = Asset::new("icon.svg", SVG, include_bytes!("assets/icon.svg"));
/// The script that runs before anything is drawn: light or dark.
pub(crate) static THEME: Asset = Asset::new("theme.js", SCRIPT, include_bytes!("assets/theme.js"));

/// The scripts that run once the page is loaded, in this order; the log is that of a device.
pub(crate) static SCRIPTS: [Asset; 4] = [
    Asset::new(
        "htmx.min.js",
        SCRIPT,
        include_bytes!("assets/vendor/htmx.min.js"),
    ),
    Asset::new(
        "idiomorph.min.js",
        SCRIPT,
        include_bytes!("assets/vendor/idiomorph.min.js"),
    ),
    Asset::new("log.js", SCRIPT, include_bytes!("assets/log.js")),
    Asset::new(
        "dashboard.js",
        SCRIPT,
        include_bytes!("assets/dashboard.js"),
    ),
];

pub(super) fn routes() -> Routes {
    Routes::new().route("/assets/{hash}/{name}", get(serve))
}

async fn serve(Path((hash, name)): Path<(String, String)>, headers: HeaderMap) -> PageResult {
    let asset = [&STYLE, &ICON, &THEME]
        .into_iter()
        .chain(&SCRIPTS)
        .find(|asset| asset.name == name && asset.hash() == hash)
        .ok_or_else(PageError::nothing_here)?;
    let tag = format!("\"{hash}\"");
    let etag = headers.get(header::IF_NONE_MATCH);
    let is_current = etag.is_some_and(|etag| etag.as_bytes() == tag.as_bytes());
    let headers = [
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::ETAG, &*tag),
    ];
    Ok(if is_current {
        (StatusCode::NOT_MODIFIED, headers).into_response()
    } else {
        let kind = [(header::CONTENT_TYPE, asset.kind)];
        (kind, headers, asset.bytes).into_response()
    })
}
