//! Chromium's DevTools protocol, as far as the tests need it: commands and their answers, and events, as JSON over one
//! WebSocket for all pages. A library with types for the whole protocol takes a minute to build, and its types fit only
//! one version of Chromium.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

/// Handles an event of a page, with its name and its parameters.
type Listener = Box<dyn Fn(&str, &Value) + Send>;

/// A connection to a browser, until it is dropped.
pub(super) struct DevTools {
    shared: Arc<Mutex<DevToolsState>>,
    outgoing: mpsc::UnboundedSender<Message>,
    driver: JoinHandle<()>,
}

#[derive(Default)]
struct DevToolsState {
    /// The number of the last command.
    latest: u64,
    /// Waiting callers, by the number of the command.
    waiting: HashMap<u64, oneshot::Sender<Result<Value, String>>>,
    /// By the session of the page.
    listeners: HashMap<String, Listener>,
}

impl DevTools {
    pub(super) async fn connect(address: &str) -> DevTools {
        let host = address.strip_prefix("ws://");
        let host = host.and_then(|rest| rest.split('/').next());
        let stream = TcpStream::connect(host.expect("the address of a WebSocket")).await;
        let stream = stream.expect("a connection to Chromium");
        let (socket, _) = tokio_tungstenite::client_async(address, stream)
            .await
            .expect("a WebSocket to Chromium");
        let (mut sink, mut incoming) = socket.split();
        let (outgoing, mut queue) = mpsc::unbounded_channel();
        let shared = Arc::<Mutex<DevToolsState>>::default();
        let of_driver = Arc::clone(&shared);
        let driver = tokio::spawn(async move {
            loop {
                tokio::select! {
                    Some(message) = queue.recv() => {
                        if sink.send(message).await.is_err() {
                            break;
                        }
                    }
                    message = incoming.next() => match message {
                        Some(Ok(Message::Text(text))) => lock(&of_driver).receive(&text),
                        Some(Ok(_)) => {}
                        _ => break,
                    },
                }
            }
            lock(&of_driver).waiting.clear();
        });
        DevTools {
            shared,
            outgoing,
            driver,
        }
    }

    /// Sends one command, to a page or to the browser itself.
    ///
    /// # Errors
    /// Chromium's reason for not executing it.
    pub(super) async fn command(
        &self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
    ) -> Result<Value, String> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut shared = lock(&self.shared);
            shared.latest += 1;
            let id = shared.latest;
            shared.waiting.insert(id, sender);
            id
        };
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let gone = "Chromium is gone".to_owned();
        if self
            .outgoing
            .send(Message::text(command.to_string()))
            .is_err()
        {
            return Err(gone);
        }
        answer.await.unwrap_or(Err(gone))
    }

    /// Listens to all events of a page. Events before an answer are handled before it.
    pub(super) fn listen(&self, session: &str, listener: impl Fn(&str, &Value) + Send + 'static) {
        let listener = Box::new(listener);
        lock(&self.shared)
            .listeners
            .insert(session.to_owned(), listener);
    }
}

impl Drop for DevTools {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl DevToolsState {
    fn receive(&mut self, text: &str) {
        let mut message: Value = serde_json::from_str(text).expect("Chromium sends JSON");
        if let Some(id) = message["id"].as_u64() {
            let Some(waiting) = self.waiting.remove(&id) else {
                return;
            };
            let answer = match message["error"]["message"].as_str() {
                Some(why) => Err(why.to_owned()),
                None => Ok(message["result"].take()),
            };
            // An error means that the caller's deadline has passed.
            let _ = waiting.send(answer);
        } else if let Some(method) = message["method"].as_str() {
            let session = message["sessionId"].as_str().unwrap_or_default();
            if let Some(listener) = self.listeners.get(session) {
                listener(method, &message["params"]);
            }
        }
    }
}

fn lock(shared: &Mutex<DevToolsState>) -> MutexGuard<'_, DevToolsState> {
    shared.lock().expect("nobody has panicked with it")
}
