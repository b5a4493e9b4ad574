//! The program is killed while many write, and started again: whatever was acknowledged is there.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use data::testing::on_fresh;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::fuzz::whole;
use crate::harness::{Cloud, client};
use crate::shop::{Shop, uuid};

const CLIENTS: usize = 64;
/// How often the program is killed, where `KILLS` says nothing else.
const KILLS: u32 = 4;
/// Writes that are acknowledged between two kills, at least.
const BETWEEN: usize = 60;
/// How long the program may take to be back, and to take writes.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was acknowledged: of tags and variables, which number a device has.
#[derive(Debug, Default, Clone)]
struct Acknowledged {
    tags: BTreeSet<String>,
    variables: BTreeSet<String>,
    /// The last temperature that each device reported and was thanked for, and those it sent since.
    reports: Vec<(i64, BTreeSet<i64>)>,
}

/// One who writes as fast as the answers come.
struct Writer {
    number: usize,
    client: Client,
    url: String,
    /// The administrator's key, and the device's own.
    token: String,
    key: String,
    device: i64,
    fleet: i64,
    acknowledged: Arc<Mutex<Acknowledged>>,
    over: Arc<AtomicBool>,
}

impl Writer {
    async fn write(self) {
        let mut round = 0;
        while !self.over.load(Ordering::Relaxed) {
            round += 1;
            let name = format!("T{}_{round}", self.number);
            let done = match round % 3 {
                0 => {
                    let body = json!({ "device": self.device, "tag_key": name, "value": "x" });
                    let done = self
                        .send(Method::POST, "/v7/device_tag", &self.token, body)
                        .await;
                    done.map(|()| self.with(|it| it.tags.insert(name)))
                }
                1 => {
                    let body = json!({ "application": self.fleet, "name": name, "value": "x" });
                    let done = self
                        .send(
                            Method::POST,
                            "/v7/application_environment_variable",
                            &self.token,
                            body,
                        )
                        .await;
                    done.map(|()| self.with(|it| it.variables.insert(name)))
                }
                _ => {
                    // A status goes into the row at once, whatever measurements do.
                    let body = json!({ (device_uuid(self.number)): { "status": format!("round {round}") } });
                    self.with(|it| it.reports[self.number].1.insert(round));
                    let done = self
                        .send(Method::PATCH, "/device/v3/state", &self.key, body)
                        .await;
                    done.map(|()| {
                        self.with(|it| {
                            it.reports[self.number] = (round, BTreeSet::new());
                            true
                        })
                    })
                }
            };
            if done.is_none() {
                // It is gone; it will be back.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    fn with(&self, note: impl FnOnce(&mut Acknowledged) -> bool) -> bool {
        note(&mut self.acknowledged.lock().expect("the list"))
    }

    /// Nothing where no answer came, or one that promises nothing.
    async fn send(&self, method: Method, path: &str, token: &str, body: Value) -> Option<()> {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.bearer_auth(token).json(&body).timeout(PATIENCE);
        let status = request.send().await.ok()?.status();
        let fine = status.is_success() || status == StatusCode::SERVICE_UNAVAILABLE;
        assert!(fine, "{status} of {path}: {body}");
        status.is_success().then_some(())
    }
}

fn device_uuid(number: usize) -> String {
    uuid(u32::try_from(number).expect("few"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_acknowledged_is_lost_when_the_program_is_killed() {
    let kills = std::env::var("KILLS").map_or(KILLS, |it| it.parse().expect("a number"));
    on_fresh(async |url| {
        let mut cloud = Cloud::start_with(&url, WITHOUT_LIMITS).await;
        let address = cloud.url.clone();
        let shop = Shop::open(&cloud).await;
        let (token, fleet) = (shop.ann.token.clone(), shop.fleet);
        let mut devices = Vec::new();
        for number in 0..CLIENTS {
            let device = shop.device(u32::try_from(number).expect("few")).await;
            devices.push((device.id, device.signed.token.clone()));
        }
        let acknowledged = Arc::new(Mutex::new(Acknowledged {
            reports: vec![(0, BTreeSet::new()); CLIENTS],
            ..Acknowledged::default()
        }));
        let over = Arc::new(AtomicBool::new(false));
        let writers = devices
            .iter()
            .enumerate()
            .map(|(number, (device, key))| Writer {
                number,
                client: client(),
                url: address.clone(),
                token: token.clone(),
                key: key.clone(),
                device: *device,
                fleet,
                acknowledged: Arc::clone(&acknowledged),
                over: Arc::clone(&over),
            });
        let writing: Vec<_> = writers.map(|writer| tokio::spawn(writer.write())).collect();
        let count = || {
            let all = acknowledged.lock().expect("the list");
            all.tags.len() + all.variables.len()
        };
        for kill in 0..=kills {
            let before = count();
            let more = async {
                while count() < before + BETWEEN {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, more)
                .await
                .expect("writes that go through");
            if kill < kills {
                cloud.kill();
                drop(cloud);
                cloud = Cloud::again(&address, &url, WITHOUT_LIMITS).await;
            }
        }
        over.store(true, Ordering::Relaxed);
        for writer in writing {
            writer.await.expect("a writer that sees no other answer");
        }
        let all = acknowledged.lock().expect("the list").clone();
        check(&cloud, &token, &devices, &all).await;
        cloud.end().await;
        whole(&url).await;
    })
    .await;
}

/// Holds what is there against what was acknowledged.
async fn check(cloud: &Cloud, token: &str, devices: &[(i64, String)], acknowledged: &Acknowledged) {
    let ann = cloud.by(token.to_owned());
    for (resource, field, expected) in [
        ("device_tag", "tag_key", &acknowledged.tags),
        (
            "application_environment_variable",
            "name",
            &acknowledged.variables,
        ),
    ] {
        let rows = ann.rows(&format!("/v7/{resource}?$select={field}")).await;
        let there: BTreeSet<&str> = rows.iter().filter_map(|row| row[field].as_str()).collect();
        let lost: Vec<_> = expected
            .iter()
            .filter(|it| !there.contains(it.as_str()))
            .collect();
        assert!(
            lost.is_empty(),
            "{} of {} {resource}s are lost: {lost:?}",
            lost.len(),
            expected.len()
        );
        // What came after no answer may be there; no more than each client had under way at each kill.
        println!(
            "{resource}: {} acknowledged, {} there",
            expected.len(),
            there.len()
        );
    }
    for ((device, _), (last, since)) in devices.iter().zip(&acknowledged.reports) {
        let rows = ann
            .rows(&format!("/v7/device({device})?$select=status"))
            .await;
        let status = rows[0]["status"]
            .as_str()
            .and_then(|it| it.strip_prefix("round ")?.parse::<i64>().ok());
        let fits = status.is_some_and(|it| it == *last || since.contains(&it))
            || status.is_none() && *last == 0;
        assert!(
            fits,
            "device {device} says {status:?}; {last} was acknowledged and {since:?} sent"
        );
    }
}

const WITHOUT_LIMITS: &str = "[limits]\nrequests_per_minute = 1000000000";
