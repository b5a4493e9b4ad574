use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A registry that answers each request as the test specifies and records the requests.
pub(crate) struct FakeRegistry {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl FakeRegistry {
    /// Starts the registry. `answer` receives the path and the whole head of a request and returns
    /// the whole answer.
    pub(crate) async fn start(
        answer: impl Fn(&str, &str) -> String + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let registry = FakeRegistry {
            address: listener.local_addr().unwrap().to_string(),
            requests: Arc::default(),
        };
        let requests = registry.requests.clone();
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (requests, answer) = (requests.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = client.read_u8().await else {
                            return;
                        };
                        head.push(byte);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap();
                    let text = answer(path, &head);
                    requests.lock().unwrap().push(head);
                    // A client that has read enough is not an error.
                    let _ = client.write_all(text.as_bytes()).await;
                });
            }
        });
        registry
    }

    pub(crate) fn image(&self) -> ImageRef {
        format!("{}/shop/web:1", self.address).parse().unwrap()
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

fn auth() -> RegistryAuth {
    RegistryAuth {
        user: "d_1".into(),
        password: "secret".into(),
        cloud: None,
    }
}

/// `d_1:secret`.
const BASIC: &str = "Basic ZF8xOnNlY3JldA==";

async fn manifest(registry: &FakeRegistry, digest: Option<&str>) -> Result<String, EngineError> {
    let repository = Repository::new(&registry.image(), Some(&auth()))?;
    let bytes = repository.manifest(digest).await?;
    Ok(String::from_utf8(bytes).unwrap())
}

#[tokio::test]
async fn credentials_are_sent_only_if_the_registry_requires_them() {
    let registry = FakeRegistry::start(|_, _| answer("200 OK", "", "{}")).await;
    assert_eq!(manifest(&registry, None).await.unwrap(), "{}");
    let requests = registry.requests();
    assert_eq!(requests.len(), 1);
    assert!(
        requests[0].starts_with("GET /v2/shop/web/manifests/1 HTTP"),
        "{requests:?}"
    );
    assert!(
        !requests[0].to_lowercase().contains("authorization"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn basic_credentials_answer_a_basic_challenge() {
    let registry = FakeRegistry::start(|_, head| {
        if head.contains(BASIC) {
            answer("200 OK", "", "{}")
        } else {
            answer(
                "401 Unauthorized",
                "WWW-Authenticate: Basic realm=\"r\"\r\n",
                "",
            )
        }
    })
    .await;
    assert_eq!(manifest(&registry, None).await.unwrap(), "{}");
    assert_eq!(registry.requests().len(), 2);
}

#[tokio::test]
async fn token_of_the_service_that_the_challenge_names_is_used() {
    for field in ["token", "access_token"] {
        let registry = FakeRegistry::start(move |path, head| {
            if path.starts_with("/token?") {
                let right = path.contains("scope=repository%3Ashop%2Fweb%3Apull")
                    && path.contains("service=r.io")
                    && head.contains(BASIC);
                let token = if right { "granted" } else { "refused" };
                return answer("200 OK", "", &format!("{{\"{field}\":\"{token}\"}}"));
            }
            if head.contains("Bearer granted") {
                return answer("200 OK", "", "{}");
            }
            let host = head
                .lines()
                .find_map(|line| line.strip_prefix("host: "))
                .unwrap();
            let challenge = format!(
                "WWW-Authenticate: Bearer realm=\"http://{host}/token\",service=\"r.io\"\r\n"
            );
            answer("401 Unauthorized", &challenge, "")
        })
        .await;
        assert_eq!(manifest(&registry, None).await.unwrap(), "{}");
    }
}

#[tokio::test]
async fn a_registry_that_names_another_host_for_tokens_gets_no_key_sent_there() {
    let elsewhere = FakeRegistry::start(|_, _| answer("200 OK", "", "{\"token\":\"t\"}")).await;
    // Another host on this machine than the registry's.
    let realm = format!(
        "http://{}/token",
        elsewhere.address.replace("127.0.0.1", "localhost")
    );
    let registry = FakeRegistry::start(move |_, _| {
        let challenge = format!("WWW-Authenticate: Bearer realm=\"{realm}\"\r\n");
        answer("401 Unauthorized", &challenge, "")
    })
    .await;
    let refused = manifest(&registry, None).await.unwrap_err();
    let cause = refused.source().unwrap().to_string();
    assert!(cause.contains("`localhost`"), "{cause}");
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn refusals_of_the_registry_are_distinguished() {
    for (status, not_found) in [
        ("404 Not Found", true),
        ("401 Unauthorized", false),
        ("403 Forbidden", false),
        ("500 Oops", false),
    ] {
        let registry = FakeRegistry::start(move |_, _| answer(status, "", "{}")).await;
        let failed = manifest(&registry, None).await.unwrap_err();
        assert_eq!(
            matches!(failed, EngineError::NotFound { .. }),
            not_found,
            "{status}"
        );
    }
}

#[tokio::test]
async fn endless_answers_are_not_read_to_their_end() {
    let registry = FakeRegistry::start(|_, _| {
        let body = "x".repeat(MAX_MANIFEST + 1);
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}")
    })
    .await;
    let failed = manifest(&registry, None).await.unwrap_err();
    let cause = failed.source().unwrap().to_string();
    assert!(cause.contains("longer than"), "{cause}");
}

#[tokio::test]
async fn the_manifest_must_have_the_requested_digest() {
    let registry = FakeRegistry::start(|_, _| answer("200 OK", "", "{}")).await;
    let right = sha256_digest(b"{}");
    assert_eq!(manifest(&registry, Some(&right)).await.unwrap(), "{}");
    assert!(
        manifest(&registry, Some(&sha256_digest(b"other")))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn password_is_in_no_message() {
    let registry = FakeRegistry::start(|_, _| answer("403 Forbidden", "", "")).await;
    let failed = manifest(&registry, None).await.unwrap_err();
    let shown = format!("{failed:?} {failed}");
    assert!(!shown.contains("secret"), "{shown}");
}
