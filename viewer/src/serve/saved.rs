//! A page that needs no server: scripts, style and answers in one file.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tower::ServiceExt as _;

use super::assets::ASSETS;
use super::live::Live;
use super::routes;

/// Answers for a page that is saved, by the addresses that the page asks for.
pub(crate) struct Saved {
    routes: Router,
    runtime: tokio::runtime::Runtime,
    answers: serde_json::Map<String, Json>,
}

impl Saved {
    /// No answers yet, of what was read so far.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub(crate) fn new(live: Arc<Live>) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self { routes: routes::questions(live), runtime, answers: serde_json::Map::new() })
    }

    /// Puts the answer to a question into the page; `None` if there is none. The address is that of the
    /// server without `/api/`, its parameters by name.
    pub(crate) fn ask(&mut self, address: &str) -> Option<&Json> {
        if !self.answers.contains_key(address) {
            let request = Request::get(format!("/api/{address}")).body(Body::empty()).ok()?;
            let routes = self.routes.clone();
            let answer = self.runtime.block_on(async {
                let response = routes.oneshot(request).await.ok()?;
                let is_there = response.status() == StatusCode::OK;
                let body = to_bytes(response.into_body(), usize::MAX).await.ok()?;
                serde_json::from_slice(&body).ok().filter(|_| is_there)
            })?;
            self.answers.insert(address.to_owned(), answer);
        }
        self.answers.get(address)
    }

    /// The page.
    pub(crate) fn page(self) -> String {
        let icon =
            format!("data:image/svg+xml;base64,{}", BASE64_STANDARD.encode(text("icon.svg")));
        let style = text("style.css").replace("/pages/icon.svg", &icon);
        let script = script();
        // Nothing in it ends the element or begins a comment.
        let answers = Json::Object(self.answers).to_string().replace('<', "\\u003c");
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; \
             form-action 'none'",
            hash(&script),
            hash(&style)
        );
        let head = format!(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <style>{style}</style>\n\
             <script type=\"application/json\" id=\"answers\">{answers}</script>"
        );
        let run = "<script type=\"module\" src=\"/pages/js/main.js\"></script>";
        text("index.html")
            .replace("/pages/icon.svg", &icon)
            .replace(run, &format!("<script type=\"module\">{script}</script>"))
            .replace("<link rel=\"stylesheet\" href=\"/pages/style.css\">", &head)
    }
}

fn text(name: &str) -> &'static str {
    ASSETS.iter().find(|asset| asset.name == name).map_or("", |asset| asset.text)
}

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

/// All scripts as one. They import in the order of the list, and no name is there twice, so that it is
/// enough to leave the words for it out.
fn script() -> String {
    let mut all = String::new();
    for asset in ASSETS.iter().filter(|asset| asset.name.ends_with(".js")) {
        let mut is_import = false;
        for line in asset.text.lines() {
            is_import |= line.starts_with("import ");
            if !is_import {
                all.push_str(line.strip_prefix("export ").unwrap_or(line));
                all.push('\n');
            }
            is_import &= !line.ends_with(';');
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_put_together_in_the_order_in_which_they_import_each_other() {
        let scripts: Vec<_> = ASSETS.iter().filter(|asset| asset.name.ends_with(".js")).collect();
        for (at, script) in scripts.iter().enumerate() {
            let imports = script.text.lines().filter(|line| !line.trim_start().starts_with('*'));
            for import in imports.filter_map(|line| line.split_once(" from \"")) {
                let name = import.1.trim_end_matches("\";").rsplit('/').next().unwrap_or_default();
                let place =
                    scripts.iter().position(|other| other.name.rsplit('/').next() == Some(name));
                assert!(place.is_some_and(|place| place < at), "{} imports {name}", script.name);
            }
        }
    }

    #[test]
    fn no_script_ends_its_element_or_leaves_a_word_of_modules() {
        let script = script();
        assert!(!script.contains("</script") && !script.contains("<!--"));
        let is_left = |line: &&str| line.starts_with("import ") || line.starts_with("export ");
        assert_eq!(script.lines().find(is_left), None);
    }
}
