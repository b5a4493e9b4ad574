//! A reader of `GET /v2/local/logs`.

use std::collections::VecDeque;

use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::supervisor::Supervisor;
use crate::until::DEADLINE;

/// Reads line by line, as fast or as slowly as a test calls it.
pub struct LogReader {
    body: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    partial: Vec<u8>,
    lines: VecDeque<Value>,
}

impl Supervisor {
    /// Opens the log stream and reads its greeting.
    ///
    /// # Panics
    /// If the stream is refused or greets with something else.
    pub async fn read_logs(&self) -> LogReader {
        // No time limit: the test decides how long it reads.
        let request = self
            .client()
            .get(format!("{}/v2/local/logs", self.base()))
            .bearer_auth(self.key());
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        let mut reader = LogReader {
            body: response.bytes_stream().boxed(),
            partial: Vec::new(),
            lines: VecDeque::new(),
        };
        let greeting = reader.next().await;
        let expected = serde_json::json!({"message": "Streaming logs", "isSystem": true});
        assert_eq!(greeting, Some(expected));
        reader
    }
}

impl LogReader {
    /// Returns the next line; `None` once the stream has ended.
    ///
    /// # Panics
    /// If none comes before the [`DEADLINE`], or one is not JSON.
    pub async fn next(&mut self) -> Option<Value> {
        match tokio::time::timeout(DEADLINE, self.read()).await {
            Ok(line) => line,
            Err(_) => panic!("no line within {DEADLINE:?}"),
        }
    }

    /// Reads until a line has the message `text`, and returns it.
    ///
    /// # Panics
    /// If the stream ends first, or the [`DEADLINE`] is reached.
    pub async fn until_message(&mut self, text: &str) -> Value {
        self.messages_until(text).await.1
    }

    /// Like [`LogReader::until_message`], and also returns the messages before it.
    ///
    /// # Panics
    /// The same.
    pub async fn messages_until(&mut self, text: &str) -> (Vec<String>, Value) {
        let mut seen = Vec::new();
        let found = tokio::time::timeout(DEADLINE, self.find_message(text, &mut seen)).await;
        match found {
            Ok(Some(line)) => (seen, line),
            Ok(None) => panic!("the stream ended before it said `{text}`: {seen:#?}"),
            Err(_) => panic!("nothing said `{text}` within {DEADLINE:?}: {seen:#?}"),
        }
    }

    /// Adds other messages to `seen`.
    async fn find_message(&mut self, text: &str, seen: &mut Vec<String>) -> Option<Value> {
        loop {
            let line = self.read().await?;
            let message = line["message"].as_str().unwrap_or_default();
            if message.contains(text) {
                return Some(line);
            }
            seen.push(message.to_owned());
        }
    }

    async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            let chunk = self.body.next().await?.ok()?;
            self.partial.extend_from_slice(&chunk);
            while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.partial.drain(..=end).collect();
                match serde_json::from_slice(&line) {
                    Ok(value) => self.lines.push_back(value),
                    Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&line)),
                }
            }
        }
    }
}
