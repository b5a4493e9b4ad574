//! The program is killed during many writes, and started again: every acknowledged write is there. The same for one of
//! two replicas, and for a PostgreSQL server that is stopped.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use data::testing::on_fresh;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::fake_device::{KnownDevice, connect_at, known};
use crate::fuzz::whole;
use crate::harness::{ApiCaller, Cloud, PATIENCE, client, read};
use crate::postgres_server::{PostgresServer, Stop};
use crate::reach::proxy::{echo, send_device_request};
use crate::reach::until;
use crate::replicas::{Replicas, on_two_with, two_at};
use crate::shop::{Shop, uuid};

const CLIENTS: usize = 64;
/// How often the program is killed, unless `KILLS` says otherwise.
const KILLS: u32 = 4;
/// Minimum number of acknowledged writes between two kills.
const BETWEEN: usize = 60;

/// The acknowledged writes: for tags and variables, the number that a device has.
#[derive(Debug, Default, Clone)]
struct AcknowledgedWrites {
    tags: BTreeSet<String>,
    variables: BTreeSet<String>,
    /// The last acknowledged temperature of each device, and those sent since.
    reports: Vec<(i64, BTreeSet<i64>)>,
}

/// A client that writes as fast as the answers arrive.
struct Writer {
    number: usize,
    client: Client,
    /// The addresses of the replicas; without an answer from one, the writer tries the next.
    urls: Vec<String>,
    /// The administrator's key, and the device's own.
    token: String,
    key: String,
    device: i64,
    fleet: i64,
    acknowledged: Arc<Mutex<AcknowledgedWrites>>,
    over: Arc<AtomicBool>,
}

impl Writer {
    async fn write(mut self) {
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
                    // A status is written to the row at once, unlike measurements.
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
                // The replica is gone; it will be back, and another may be there.
                self.urls.rotate_left(1);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    fn with(&self, note: impl FnOnce(&mut AcknowledgedWrites) -> bool) -> bool {
        note(&mut self.acknowledged.lock().expect("the list"))
    }

    /// Returns none without an answer, or with one that acknowledges nothing.
    async fn send(&self, method: Method, path: &str, token: &str, body: Value) -> Option<()> {
        let url = format!("{}{path}", self.urls[0]);
        let request = self.client.request(method, url);
        let request = request.bearer_auth(token).json(&body).timeout(PATIENCE);
        let answer = request.send().await.ok()?;
        let status = answer.status();
        // An answer counts only when it is complete.
        let text = answer.text().await.ok()?;
        // The requests of one person wait for each other, and the last of them not for long.
        let fine = status.is_success()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::SERVICE_UNAVAILABLE && text.contains("the database");
        assert!(fine, "{status} of {path}: {body}: {text}");
        status.is_success().then_some(())
    }
}

fn device_uuid(number: usize) -> String {
    uuid(u32::try_from(number).expect("few"))
}

/// Clients that write until they are stopped.
struct Load {
    token: String,
    devices: Vec<(i64, String)>,
    acknowledged: Arc<Mutex<AcknowledgedWrites>>,
    over: Arc<AtomicBool>,
    writing: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts the clients, each at one of the addresses.
    async fn begin(shop: &Shop<'_>, clients: usize, urls: &[String]) -> Self {
        let mut devices = Vec::new();
        for number in 0..clients {
            let device = shop.device(u32::try_from(number).expect("few")).await;
            devices.push((device.id, device.signed.token.clone()));
        }
        let acknowledged = Arc::new(Mutex::new(AcknowledgedWrites {
            reports: vec![(0, BTreeSet::new()); clients],
            ..AcknowledgedWrites::default()
        }));
        let over = Arc::new(AtomicBool::new(false));
        let writers = devices.iter().enumerate().map(|(number, (device, key))| {
            let mut urls = urls.to_vec();
            let first = number % urls.len();
            urls.rotate_left(first);
            Writer {
                number,
                client: client(),
                urls,
                token: shop.ann.token.clone(),
                key: key.clone(),
                device: *device,
                fleet: shop.fleet,
                acknowledged: Arc::clone(&acknowledged),
                over: Arc::clone(&over),
            }
        });
        let writing = writers.map(|writer| tokio::spawn(writer.write())).collect();
        Load {
            token: shop.ann.token.clone(),
            devices,
            acknowledged,
            over,
            writing,
        }
    }

    fn count(&self) -> usize {
        let all = self.acknowledged.lock().expect("the list");
        all.tags.len() + all.variables.len()
    }

    /// Waits for this many further writes.
    async fn goes_on(&self, writes: usize) {
        let before = self.count();
        let more = async {
            while self.count() < before + writes {
                let ended = self.writing.iter().any(JoinHandle::is_finished);
                assert!(!ended, "a writer saw an answer that it should not have");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, more)
            .await
            .expect("writes that go through");
    }

    /// Ends it, and checks that every acknowledged write is there.
    async fn end(self, cloud: &Cloud) {
        self.over.store(true, Ordering::Relaxed);
        for writer in self.writing {
            writer.await.expect("a writer that sees no other answer");
        }
        let all = self.acknowledged.lock().expect("the list").clone();
        check(cloud, &self.token, &self.devices, &all).await;
    }
}

fn rounds(otherwise: u32) -> u32 {
    std::env::var("KILLS").map_or(otherwise, |it| it.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_acknowledged_is_lost_when_the_program_is_killed() {
    let kills = rounds(KILLS);
    on_fresh(async |url| {
        let mut cloud = Cloud::start_with(&url, WITHOUT_LIMITS).await;
        let address = cloud.url.clone();
        let load = {
            let shop = Shop::open(&cloud).await;
            Load::begin(&shop, CLIENTS, std::slice::from_ref(&address)).await
        };
        for kill in 0..=kills {
            load.goes_on(BETWEEN).await;
            if kill < kills {
                cloud.kill();
                drop(cloud);
                cloud = Cloud::again(&address, &url, WITHOUT_LIMITS).await;
            }
        }
        load.end(&cloud).await;
        cloud.end().await;
        whole(&url).await;
    })
    .await;
}

/// Runs a device that opens its tunnel at whichever replica answers, and answers requests.
async fn tunnelled(device: KnownDevice, replicas: Arc<[String; 2]>, over: Arc<AtomicBool>) {
    let mut at = usize::try_from(device.id).expect("a number");
    while !over.load(Ordering::Relaxed) {
        at += 1;
        if let Some(tunnel) = connect_at(&replicas[at % 2], &device, echo()).await {
            // Until the replica is gone.
            let _ = tunnel.await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Checks that each device can be reached through a replica, wherever its tunnel is.
async fn all_are_reached(at: &ApiCaller<'_>, devices: &[KnownDevice]) {
    for device in devices {
        let body = json!({ "deviceId": device.id, "method": "GET" });
        until("each device is back", async || {
            let answer = read(send_device_request(at, "/ping", body.clone()).await).await;
            (answer == (StatusCode::OK, json!("OK"))).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_one_of_two_replicas_is_killed_at_random_and_nothing_acknowledged_is_lost() {
    let rounds = rounds(4);
    on_two_with(WITHOUT_LIMITS, async |two| {
        let settings = two.settings(WITHOUT_LIMITS);
        let Replicas { a, b, database, .. } = &two;
        let urls = [a.url.clone(), b.url.clone()];
        let shop = Shop::open(a).await;
        let mut devices = Vec::new();
        for _ in 0..8 {
            devices.push(known(a, &shop.ann, shop.fleet).await);
        }
        let load = Load::begin(&shop, 16, &urls).await;
        let over = Arc::new(AtomicBool::new(false));
        let replicas = Arc::new(urls.clone());
        let tunnels: Vec<_> = devices
            .iter()
            .map(|device| tunnelled(device.clone(), Arc::clone(&replicas), Arc::clone(&over)))
            .map(tokio::spawn)
            .collect();
        let token = shop.ann.token.clone();
        all_are_reached(&shop.ann, &devices).await;
        // Restarted replicas take the place of those that were killed.
        let mut running: [Option<Cloud>; 2] = [None, None];
        for round in 0..rounds {
            let mut chance = [0];
            getrandom::fill(&mut chance).expect("random bytes");
            let killed = usize::from(chance[0] % 2);
            println!(
                "round {round}: replica {killed} is killed, {} writes",
                load.count()
            );
            load.goes_on(BETWEEN).await;
            match &running[killed] {
                Some(again) => again.kill(),
                None => [a, b][killed].kill(),
            }
            // The other one serves everybody, and reaches every device as it reconnects.
            let left = running[1 - killed].as_ref().unwrap_or([a, b][1 - killed]);
            load.goes_on(BETWEEN).await;
            all_are_reached(&left.by(token.clone()), &devices).await;
            // Its address is only free when it is gone.
            running[killed] = None;
            [a, b][killed].gone();
            let again = Cloud::again(&urls[killed], database, &settings).await;
            all_are_reached(&again.by(token.clone()), &devices).await;
            running[killed] = Some(again);
        }
        load.goes_on(BETWEEN).await;
        let count = load.count();
        let last = running[0].as_ref().unwrap_or(a);
        load.end(last).await;
        println!("{count} writes were acknowledged in {rounds} rounds, and all are there");
        over.store(true, Ordering::Relaxed);
        for tunnel in tunnels {
            tunnel.abort();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_postgresql_is_restarted_under_load_and_nothing_acknowledged_is_lost() {
    let rounds = rounds(2);
    let Some(mut server) = PostgresServer::start() else {
        return;
    };
    let database = data::testing::fresh_postgres(&server.url()).await;
    let cloud = Cloud::start_with(&database, WITHOUT_LIMITS).await;
    let shop = Shop::open(&cloud).await;
    let load = Load::begin(&shop, 16, std::slice::from_ref(&cloud.url)).await;
    let health = async || {
        let answer = cloud.ask(Method::GET, "/health").send().await;
        answer.expect("an answer").status()
    };
    for round in 0..rounds {
        load.goes_on(BETWEEN).await;
        let stop = match round % 2 {
            0 => Stop::Immediate,
            _ => Stop::Fast,
        };
        server.stop(stop);
        until("its health says so", async || {
            (health().await == StatusCode::SERVICE_UNAVAILABLE).then_some(())
        })
        .await;
        // Requests during that time are answered with the reason.
        let request = cloud.ask(Method::GET, "/v7/device_type?$select=slug&$top=1");
        let (status, answer) = read(request.send().await.expect("an answer")).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
        assert!(answer.to_string().contains("the database"), "{answer}");
        server.begin();
        let begun = Instant::now();
        load.goes_on(1).await;
        println!(
            "round {round}, {stop:?}: writes go on {:?} after the server is back",
            begun.elapsed()
        );
        load.goes_on(BETWEEN).await;
        // No connection of any pool remains broken: people's, guests' and devices'.
        for number in 0..60 {
            let who = [&shop.ann.token, &load.devices[0].1, ""][number % 3];
            let by = cloud.by(who.to_owned());
            let path = match number % 3 {
                1 => format!("/device/v3/{}/state", device_uuid(0)),
                _ => "/v7/device_type?$select=slug&$top=1".to_owned(),
            };
            let request = match who {
                "" => cloud.ask(Method::GET, &path),
                _ => by.ask(Method::GET, &path),
            };
            let (status, answer) = read(request.send().await.expect("an answer")).await;
            assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        }
        assert_eq!(health().await, StatusCode::OK);
    }
    let count = load.count();
    load.end(&cloud).await;
    println!("{count} writes were acknowledged in {rounds} rounds, and all are there");
    cloud.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_postgresql_is_restarted_at_random_under_two_replicas_and_nothing_acknowledged_is_lost()
 {
    let rounds = rounds(2);
    let Some(mut server) = PostgresServer::start() else {
        return;
    };
    let database = data::testing::fresh_postgres(&server.url()).await;
    let Some(two) = two_at(database, WITHOUT_LIMITS).await else {
        return;
    };
    let Replicas { a, b, .. } = &two;
    let shop = Shop::open(a).await;
    let load = Load::begin(&shop, 16, &[a.url.clone(), b.url.clone()]).await;
    let both_say = async |expected: StatusCode| {
        until("the health of both replicas says so", async || {
            let ask = async |cloud: &Cloud| {
                let answer = cloud.ask(Method::GET, "/health").send().await;
                answer.expect("an answer").status()
            };
            (ask(a).await == expected && ask(b).await == expected).then_some(())
        })
        .await;
    };
    for round in 0..rounds {
        let mut chance = [0; 2];
        getrandom::fill(&mut chance).expect("random bytes");
        let stop = match chance[0] % 2 {
            0 => Stop::Immediate,
            _ => Stop::Fast,
        };
        // At any point of the writers' work.
        load.goes_on(BETWEEN + usize::from(chance[1])).await;
        server.stop(stop);
        both_say(StatusCode::SERVICE_UNAVAILABLE).await;
        server.begin();
        let begun = Instant::now();
        load.goes_on(1).await;
        println!(
            "round {round}, {stop:?}, {} writes: they go on {:?} after the server is back",
            load.count(),
            begun.elapsed()
        );
        both_say(StatusCode::OK).await;
    }
    load.goes_on(BETWEEN).await;
    let count = load.count();
    load.end(b).await;
    println!("{count} writes were acknowledged in {rounds} rounds, and all are there");
}

/// Compares the stored rows with the acknowledged ones.
async fn check(
    cloud: &Cloud,
    token: &str,
    devices: &[(i64, String)],
    acknowledged: &AcknowledgedWrites,
) {
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
        // Unacknowledged writes may be there; at most as many as each client had in progress at each kill.
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

const WITHOUT_LIMITS: &str = "[limits]\nrequests_per_minute = 1000000000\n\
    [quotas]\nvariables = 1000000000\nvariable_bytes = 1000000000000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_connections_that_were_idle_when_postgresql_was_restarted_cost_nobody_an_answer() {
    let Some(mut server) = PostgresServer::start() else {
        return;
    };
    let database = data::testing::fresh_postgres(&server.url()).await;
    let cloud = Cloud::start_with(&database, WITHOUT_LIMITS).await;
    let shop = Shop::open(&cloud).await;
    let mut devices = Vec::new();
    for number in 0..8 {
        devices.push(shop.device(number).await);
    }
    let all_answer = async |round: u32| {
        let answers = (0..4).flat_map(|_| &devices).map(|device| async move {
            let by = &device.signed;
            let path = format!("/v7/device({})?$select=id", device.id);
            let (status, answer) = by.get(&path).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            device
                .report(json!({ "status": format!("round {round}") }))
                .await
        });
        for status in futures::future::join_all(answers).await {
            assert_eq!(status, StatusCode::OK);
        }
    };
    // Each pool has opened as many connections as it may.
    all_answer(0).await;
    for round in 1..4 {
        server.stop(Stop::Fast);
        server.begin();
        // One after the other, so nothing else finds the broken connections first.
        for device in &devices {
            let (status, answer) = device.signed.get("/v7/device?$select=id").await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            let name = json!({ "device": device.id, "tag_key": format!("r{round}"), "value": "x" });
            let (status, answer) = shop.ann.send(Method::POST, "/v7/device_tag", name).await;
            assert_eq!(status, StatusCode::CREATED, "{answer}");
        }
        all_answer(round).await;
    }
    cloud.end().await;
}
