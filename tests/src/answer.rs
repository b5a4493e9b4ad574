//! An answer that has been read to its end.

use serde_json::Value;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Missing if there is none.
    pub content_type: Option<String>,
    pub allow: Option<String>,
    pub text: String,
}

impl Answer {
    pub(crate) async fn read(response: reqwest::Response) -> reqwest::Result<Self> {
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Ok(Answer {
            status: response.status().as_u16(),
            content_type: header("content-type"),
            allow: header("allow"),
            text: response.text().await?,
        })
    }

    /// Returns the body as JSON.
    ///
    /// # Panics
    /// If it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.text) {
            Ok(value) => value,
            Err(error) => panic!("not JSON ({error}): {self:?}"),
        }
    }

    /// Returns the message of `{"status":"failed","message":...}`; `None` if the answer has another form.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let body: Value = serde_json::from_str(&self.text).ok()?;
        let is_json = self.content_type.as_deref() == Some("application/json; charset=utf-8");
        (is_json && body["status"] == "failed" && body.as_object()?.len() == 2)
            .then(|| body["message"].as_str().map(str::to_owned))?
    }
}
