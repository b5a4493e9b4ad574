//! What those who spread connections over replicas ask.

use std::net::SocketAddr;

use data::testing::{on_fresh, on_fresh_postgres};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::harness::{Cloud, read};
use crate::reach::until;

async fn health(cloud: &Cloud) -> (StatusCode, Value) {
    let answer = cloud.ask(Method::GET, "/health").send().await;
    read(answer.expect("an answer")).await
}

fn says(status: &str) -> Value {
    json!({ "status": status, "checks": { "database": [{ "status": status }] } })
}

#[tokio::test]
async fn a_cloud_that_can_do_its_work_says_so_to_whoever_asks_however_often() {
    on_fresh(async |database| {
        let limited = "[limits]\nrequests_per_minute = 5";
        let cloud = Cloud::start_with(&database, limited).await;
        for _ in 0..20 {
            assert_eq!(health(&cloud).await, (StatusCode::OK, says("pass")));
        }
        let answer = cloud.ask(Method::GET, "/health").send().await;
        let headers = answer.expect("an answer").headers().clone();
        assert_eq!(headers["content-type"], "application/health+json");
        assert_eq!(headers["cache-control"], "no-store");
    })
    .await;
}

/// A way to a server that can be cut.
struct Way {
    address: SocketAddr,
    to: String,
    open: Option<JoinHandle<()>>,
}

impl Way {
    async fn to(server: &str) -> Self {
        let mut way = Way {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            to: server.to_owned(),
            open: None,
        };
        way.open().await;
        way
    }

    async fn open(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("a port");
        self.address = listener.local_addr().expect("its address");
        let to = self.to.clone();
        self.open = Some(tokio::spawn(async move {
            // Dropped with the task, and so cut.
            let mut passing = tokio::task::JoinSet::new();
            while let Ok((mut here, _)) = listener.accept().await {
                let to = to.clone();
                passing.spawn(async move {
                    if let Ok(mut there) = TcpStream::connect(to).await {
                        let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
                    }
                });
            }
        }));
    }

    async fn cut(&mut self) {
        if let Some(open) = self.open.take() {
            open.abort();
            let _ = open.await;
        }
    }
}

// The way goes on while the start of the cloud is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_whose_database_is_away_says_so_until_it_is_back() {
    on_fresh_postgres(async |database| {
        let (_, rest) = database.split_once('@').expect("a user");
        let (server, _) = rest.split_once('/').expect("a name");
        let mut way = Way::to(server).await;
        let by_way = database.replace(server, &way.address.to_string());
        let cloud = Cloud::start(&by_way).await;
        assert_eq!(health(&cloud).await, (StatusCode::OK, says("pass")));
        let asked = async |path: &str| {
            let answer = cloud.ask(Method::GET, path).send().await;
            read(answer.expect("an answer")).await
        };
        let lives = (StatusCode::OK, json!({ "status": "pass" }));
        assert_eq!(asked("/health/ready").await, (StatusCode::OK, says("pass")));
        assert_eq!(asked("/health/live").await, lives);
        way.cut().await;
        let away = (StatusCode::SERVICE_UNAVAILABLE, says("fail"));
        until("it is away", async || {
            (health(&cloud).await == away).then_some(())
        })
        .await;
        assert_eq!(asked("/health/ready").await, away);
        assert_eq!(
            asked("/health/live").await,
            lives,
            "a restart would bring nothing back"
        );
        way.open().await;
        let back = (StatusCode::OK, says("pass"));
        until("it is back", async || {
            (health(&cloud).await == back).then_some(())
        })
        .await;
    })
    .await;
}
