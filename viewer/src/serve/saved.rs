//! A page that needs no server: scripts, style and answers in one file.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hashbrown::HashSet;
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

/// Most samples in the list of a saved page.
const SAMPLES: usize = 10_000;
/// Rows of one answer, as the page asks for them.
const ROWS: usize = 500;
/// Most steps that have their own pages.
const STEPS: usize = 50;
/// Most groups that have.
const GROUPS: usize = 200;
/// Most stages that have their own pages.
const STAGES: usize = 100;
/// Most spans whose attributes, events and links are there.
const SPANS: usize = 5_000;

impl Saved {
    /// No answers yet, of what was read so far.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub(crate) fn new(live: Arc<Live>) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self { routes: routes::questions(live), runtime, answers: serde_json::Map::new() })
    }

    /// Gathers what every page shows, and so many samples in detail: those of these traces, else the
    /// stuck, lost and failed ones, the slowest and the latest.
    pub(crate) fn gather(&mut self, traces: &[String], most: usize) {
        let state = self.ask("state", &[]);
        for path in ["overview", "steps", "processes", "lanes", "compare"] {
            self.ask(path, &[]);
        }
        let stages = self.ask("stages", &[]);
        let stages = stages["stages"].as_array().cloned().unwrap_or_default();
        for stage in stages.iter().take(STAGES).map(|entry| plain(&entry["stage"])) {
            self.ask("stage", &[("stage", &stage)]);
        }
        let steps = state["steps"].as_array().cloned().unwrap_or_default();
        for step in steps.iter().rev().take(STEPS).map(plain) {
            for path in ["overview", "step", "stages"] {
                self.ask(path, &[("step", &step)]);
            }
        }
        let texts: Vec<String> = steps.iter().map(plain).collect();
        for pair in texts.windows(2).rev().take(STEPS) {
            let [a, b] = [&pair[0], &pair[1]].map(|step| format!("step:{step}"));
            self.ask("compare", &[("a", &a), ("b", &b)]);
        }
        self.gather_list();
        let mut rows: Vec<Json> = Vec::new();
        if traces.is_empty() {
            for (q, sort) in [
                ("is:stuck", "stage_age"),
                ("is:lost", "start"),
                ("is:failed", "start"),
                ("", "duration"),
                ("", "start"),
            ] {
                rows.extend(self.rows(q, sort, most.min(ROWS)));
            }
        } else {
            rows.extend(
                traces.iter().flat_map(|id| self.rows(&format!("trace:{id}"), "start", ROWS)),
            );
        }
        let mut known = HashSet::new();
        rows.retain(|row| known.insert((plain(&row["trace_id"]), plain(&row["id"]))));
        let mut spans = 0;
        let mut groups = HashSet::new();
        for row in rows.iter().take(most) {
            let [trace, id] = [plain(&row["trace_id"]), plain(&row["id"])];
            let answer = self.ask("sample", &[("sample", &id), ("trace", &trace)]);
            let ids = answer["spans"]["ids"].as_str().unwrap_or_default().as_bytes();
            for span in ids.chunks(16).take(SPANS - spans) {
                let span = String::from_utf8_lossy(span);
                self.ask("span", &[("span", &*span), ("trace", &trace)]);
                spans += 1;
            }
            let [group, step] = [plain(&row["group_id"]), plain(&row["step"])];
            let is_new = groups.len() < GROUPS && groups.insert((group.clone(), step.clone()));
            if is_new && !group.is_empty() {
                self.ask("group", &[("group", &group), ("step", &step)]);
            }
        }
    }

    /// All samples as one list, which the page searches and sorts by itself.
    fn gather_list(&mut self) {
        let mut list = Json::Null;
        let mut rows = Vec::new();
        while rows.len() < SAMPLES {
            let offset = rows.len().to_string();
            let limit = ROWS.to_string();
            let asked =
                [("desc", "true"), ("limit", &*limit), ("offset", &*offset), ("sort", "start")];
            let mut page = self.look(&address("samples", &asked));
            let Some(Json::Array(more)) = page.get_mut("rows").map(Json::take) else { break };
            let is_last = more.len() < ROWS;
            rows.extend(more);
            list = page;
            if is_last {
                break;
            }
        }
        if let Json::Object(fields) = &mut list {
            fields.insert("rows".to_owned(), rows.into());
        }
        self.answers.insert("samples".to_owned(), list);
    }

    fn rows(&self, q: &str, sort: &str, most: usize) -> Vec<Json> {
        let limit = most.to_string();
        let asked = [("desc", "true"), ("limit", &*limit), ("q", q), ("sort", sort)];
        match self.look(&address("samples", &asked)).get_mut("rows").map(Json::take) {
            Some(Json::Array(rows)) => rows,
            _ => Vec::new(),
        }
    }

    /// Puts the answer to a question into the page, and returns it; `null` if there is none.
    fn ask(&mut self, path: &str, params: &[(&str, &str)]) -> Json {
        let address = address(path, params);
        if let Some(answer) = self.answers.get(&address) {
            return answer.clone();
        }
        let answer = self.look(&address);
        if !answer.is_null() {
            self.answers.insert(address, answer.clone());
        }
        answer
    }

    /// The answer to a question, as the server gives it.
    fn look(&self, address: &str) -> Json {
        let Ok(request) = Request::get(format!("/api/{address}")).body(Body::empty()) else {
            return Json::Null;
        };
        let routes = self.routes.clone();
        let answer = self.runtime.block_on(async {
            let response = routes.oneshot(request).await.ok()?;
            let is_there = response.status() == StatusCode::OK;
            let body = to_bytes(response.into_body(), usize::MAX).await.ok()?;
            serde_json::from_slice(&body).ok().filter(|_| is_there)
        });
        answer.unwrap_or(Json::Null)
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

/// A question as the page asks it: parameters by name, empty ones left out.
fn address(path: &str, params: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(params.iter().filter(|(_, value)| !value.is_empty()));
    match query.finish() {
        none if none.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// An id as it stands in an address; empty if there is none.
fn plain(id: &Json) -> String {
    match id {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
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
