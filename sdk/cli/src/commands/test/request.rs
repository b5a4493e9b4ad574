//! A request to the plugin of a test, and its expected answer.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use http::{Method, Request};
use plugin_test_host::{CallerScope, RunningHost};
use serde::Deserialize;
use serde_json::Value;

use super::caller::CallerToml;
use super::expectation::Expectation;
use super::hardware::Edges;
use crate::json_text::JsonText;

/// A request and its expected answer.
#[derive(derive_more::Display)]
#[display("{method} {path}")]
pub(crate) struct TestRequest {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    method: Method,
    path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
    caller: CallerScope,
    edges: Edges,
    answer: Expectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestToml {
    get: Option<String>,
    post: Option<String>,
    put: Option<String>,
    patch: Option<String>,
    delete: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    json: Option<Value>,
    json_text: Option<JsonText>,
    #[serde(default)]
    caller: CallerToml,
    #[serde(default)]
    edges: Edges,
    answer: Expectation,
}

impl TestRequest {
    pub(super) fn new(written: RequestToml, line: usize) -> Result<TestRequest> {
        let methods = [
            (Method::GET, written.get),
            (Method::POST, written.post),
            (Method::PUT, written.put),
            (Method::PATCH, written.patch),
            (Method::DELETE, written.delete),
        ];
        let mut methods = methods
            .into_iter()
            .filter_map(|(method, path)| Some((method, path?)));
        let (Some((method, path)), None) = (methods.next(), methods.next()) else {
            bail!("it must have one of `get`, `post`, `put`, `patch` and `delete`, with the path");
        };
        let mut headers = written.headers;
        let json = JsonText::either(written.json, written.json_text);
        let body = match (written.body, json.map_err(anyhow::Error::msg)?) {
            (Some(_), Some(_)) => bail!("it has a `body` and JSON, and can have one of them"),
            (Some(text), None) => text.into_bytes(),
            (None, Some(json)) => {
                let is_content_type = |name: &String| name.eq_ignore_ascii_case("content-type");
                if !headers.keys().any(is_content_type) {
                    let json = "application/json".to_owned();
                    headers.insert("content-type".to_owned(), json);
                }
                json.to_string().into_bytes()
            }
            (None, None) => Vec::new(),
        };
        Ok(TestRequest {
            line,
            method,
            path,
            headers,
            body,
            caller: written.caller.into(),
            edges: written.edges,
            answer: written.answer,
        })
    }

    /// Sends the request, and compares the answer.
    pub(crate) async fn differences(&self, host: &RunningHost) -> Vec<String> {
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(&self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = match request.body(self.body.clone()) {
            Ok(request) => request,
            Err(error) => return vec![format!("it cannot be sent: {error}")],
        };
        let sent = host.try_send_by(self.caller.clone(), request);
        let (answer, missed) = self.edges.during(host, sent).await;
        let mut differences = match answer {
            Ok(answer) => self.answer.differences(&answer),
            Err(error) => vec![format!("{error:#}")],
        };
        differences.extend(missed);
        differences
    }
}
