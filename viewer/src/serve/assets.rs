//! The files of the pages, which are part of the program.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Name, type, contents.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    kind: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! assets {
    ($($name:literal: $kind:ident,)*) => {
        /// All files, scripts in the order in which they import each other.
        pub(crate) const ASSETS: &[Asset] = &[
            $(Asset {
                name: $name,
                kind: $kind,
                text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/pages/", $name)),
            },)*
        ];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

assets! {
    "index.html": HTML,
    "style.css": STYLE,
    "icon.svg": IMAGE,
    "js/dom.js": SCRIPT,
    "js/format.js": SCRIPT,
    "js/color.js": SCRIPT,
    "js/router.js": SCRIPT,
    "js/saved.js": SCRIPT,
    "js/api.js": SCRIPT,
    "js/charts.js": SCRIPT,
    "js/table.js": SCRIPT,
    "js/trace/model.js": SCRIPT,
    "js/trace/find.js": SCRIPT,
    "js/trace/scale.js": SCRIPT,
    "js/trace/paint.js": SCRIPT,
    "js/trace/rows.js": SCRIPT,
    "js/trace/minimap.js": SCRIPT,
    "js/trace/labels.js": SCRIPT,
    "js/trace/arrows.js": SCRIPT,
    "js/trace/ruler.js": SCRIPT,
    "js/trace/pointer.js": SCRIPT,
    "js/trace/timeline.js": SCRIPT,
    "js/trace/values.js": SCRIPT,
    "js/trace/panel.js": SCRIPT,
    "js/trace/head.js": SCRIPT,
    "js/ages.js": SCRIPT,
    "js/lanes.js": SCRIPT,
    "js/flow.js": SCRIPT,
    "js/search.js": SCRIPT,
    "js/virtual.js": SCRIPT,
    "js/pages/overview.js": SCRIPT,
    "js/pages/samples.js": SCRIPT,
    "js/pages/group.js": SCRIPT,
    "js/pages/steps.js": SCRIPT,
    "js/pages/step.js": SCRIPT,
    "js/swimlanes.js": SCRIPT,
    "js/pages/processes.js": SCRIPT,
    "js/pages/stages.js": SCRIPT,
    "js/pages/compare.js": SCRIPT,
    "js/pages/sample.js": SCRIPT,
    "js/main.js": SCRIPT,
}

/// The page itself.
pub(super) async fn index() -> Response {
    file("index.html")
}

/// One of its files.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    file(&name)
}

fn file(name: &str) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        // Asked for again each time, since another version may run at this address tomorrow.
        Some(asset) => {
            let headers = [(header::CONTENT_TYPE, asset.kind), (header::CACHE_CONTROL, "no-cache")];
            (headers, asset.text).into_response()
        }
        None => (StatusCode::NOT_FOUND, "there is no such page\n").into_response(),
    }
}
