//! One simulated device: everything that the supervisor supplies to its link, with invented values.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use cloud_link::{
    Client, CloudError, ConfigFile, Connections, Description, IntroductionRecord,
    IntroductionSource, PlainHttp, Poll, ProvisioningState, Settings, Sink, Source, StateSource,
    TargetAnswer, TargetRefusal, establish, keep_tunnel,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use model::{Branding, DeviceUuid};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::device_context::{DeviceContext, OS};
use crate::target::Target;

/// One simulated device.
pub(crate) struct Device {
    number: u32,
    common: Arc<DeviceContext>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    target: Option<Arc<Target>>,
    done: bool,
}

impl Device {
    /// Starts this many devices, of which at most `at_once` at a time are not registered yet.
    ///
    /// # Errors
    /// If a device cannot be started.
    pub(crate) async fn start_all(
        common: &Arc<DeviceContext>,
        devices: u32,
        at_once: usize,
    ) -> anyhow::Result<()> {
        let places = Arc::new(Semaphore::new(at_once.max(1)));
        for number in 0..devices {
            let place = places.clone().acquire_owned().await?;
            let begun = Instant::now();
            let ready = Device::start(common, number)
                .with_context(|| format!("device {number} cannot be started"))?;
            let common = common.clone();
            tokio::spawn(async move {
                ready.cancelled().await;
                common.tally.registered(begun.elapsed());
                drop(place);
            });
        }
        Ok(())
    }

    /// Starts the link of a new device, which has a provisioning key. The token that it returns is cancelled once the
    /// device is registered with the cloud.
    ///
    /// # Errors
    /// If its configuration does not result in an identity.
    fn start(common: &Arc<DeviceContext>, number: u32) -> anyhow::Result<CancellationToken> {
        let mut uuid = [0; 16];
        getrandom::fill(&mut uuid)
            .map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
        let uuid: DeviceUuid = hex::encode(uuid).parse()?;
        let config = Arc::new(Config(Mutex::new(common.config(&uuid))));
        // Its keys do not belong to real devices.
        let established = establish(&*config, &uuid, "platformRootCA", PlainHttp::Anywhere)?;
        let identity = established
            .cloud
            .ok_or_else(|| anyhow::anyhow!("the cloud has no address"))?;
        let connections = common
            .connections
            .get_or_init(|| Arc::new(Connections::new(&identity, &common.agent).with_idle(256)));
        let client = Arc::new(Client::with_connections(connections.clone(), identity));
        let device = Arc::new(Device {
            number,
            common: common.clone(),
            state: Mutex::default(),
            changed: Notify::new(),
        });
        let stop = common.stop.clone();
        let provisioned = ProvisioningState::start(
            client.clone(),
            config,
            device.clone(),
            device.clone(),
            device.clone(),
            stop.clone(),
        );
        let ready = provisioned.ready;
        let counted = Arc::new(CountingClient {
            number,
            client: client.clone(),
            common: common.clone(),
        });
        cloud_link::report(
            counted.clone(),
            device.clone(),
            device.clone(),
            None,
            ready.clone(),
            stop.clone(),
        );
        let poll = Poll::start(counted, device, ready.clone(), stop.clone());
        drop(keep_tunnel(
            client,
            common.protocol.clone(),
            common.tunnel_switch(),
            move |request| answer(poll.clone(), request),
            ready.clone(),
            stop,
        ));
        Ok(ready)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Answers the cloud's requests through the tunnel.
async fn answer(poll: Poll, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::POST, "/v1/update") => {
            let _ = poll.trigger(false, false);
            (StatusCode::NO_CONTENT, "")
        }
        (&Method::GET, "/ping") => (StatusCode::OK, "OK"),
        _ => (StatusCode::NOT_FOUND, ""),
    };
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    answer
}

impl cloud_link::Device for Device {
    fn take(&self, target: Value, _force: bool) -> BoxFuture<'_, Result<(), TargetRefusal>> {
        async move {
            let uuid = target.as_object().and_then(|whole| whole.keys().next());
            let read = uuid.and_then(|uuid| Target::read(&target, uuid));
            let read = read.ok_or_else(|| TargetRefusal::Invalid("it is no target".to_owned()))?;
            let read = self.common.targets.shared(read);
            let pause = self.common.download;
            self.common.tally.record_target(self.number, read.commits());
            {
                let mut state = self.state();
                state.target = Some(read);
                state.done = pause.is_zero();
            }
            self.changed.notify_one();
            Ok(())
        }
        .boxed()
    }

    fn unchanged(&self) {}

    fn apply_again(&self, _: bool, _: bool) {}

    fn checking(&self, _: bool) {}

    fn settings(&self) -> Settings {
        let state = self.state();
        let settings = state.target.as_ref().map(|target| &target.settings);
        let settings = settings.unwrap_or(&self.common.settings);
        Settings {
            interval: self.common.interval.unwrap_or(settings.poll_interval),
            request_timeout: settings.request_timeout,
            instant_updates: settings.instant_updates,
            connectivity_check: false,
        }
    }
}

impl StateSource for Device {
    fn report(&self) -> BoxFuture<'_, Map<String, Value>> {
        let (target, done) = {
            let state = self.state();
            (state.target.clone(), state.done)
        };
        let [_, a, b, c] = self.number.to_be_bytes();
        let fields = json!({
            "status": "Idle",
            "os_version": OS,
            "os_variant": "prod",
            "supervisor_version": self.common.supervisor,
            "ip_address": format!("10.{a}.{b}.{c}"),
            "mac_address": format!("02:00:00:{a:02X}:{b:02X}:{c:02X}"),
            "api_port": 48484,
            "api_secret": format!("{:032x}", self.number),
            "apps": target.map(|target| target.apps_report(done)).unwrap_or_default(),
        });
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        async { fields }.boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        async {
            // A download ends by itself.
            let pause = if self.state().done {
                Duration::MAX
            } else {
                self.common.download
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep(pause) => self.state().done = true,
            }
        }
        .boxed()
    }
}

impl IntroductionSource for Device {
    fn description(&self) -> Description {
        Description {
            device_type: self.common.board.clone(),
            supervisor_version: self.common.supervisor.clone(),
            os_version: Some(OS.to_owned()),
            os_variant: Some("prod".to_owned()),
            mac_address: None,
        }
    }

    fn configuration(&self) -> BoxFuture<'_, BTreeMap<String, String>> {
        async { BTreeMap::new() }.boxed()
    }

    fn prefix(&self) -> String {
        Branding::default().env_prefix
    }
}

/// Nothing is recorded: a simulated device is started only once.
impl IntroductionRecord for Device {
    fn is_to(&self, _: &str) -> Result<bool, Box<dyn Error + Send + Sync>> {
        Ok(false)
    }

    fn put(&self, _: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// A config.json in memory.
struct Config(Mutex<Map<String, Value>>);

impl ConfigFile for Config {
    fn read(&self) -> Result<Map<String, Value>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.lock().clone())
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut Map<String, Value>),
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        change(&mut self.0.lock());
        Ok(())
    }
}

/// A client whose requests are counted.
struct CountingClient {
    number: u32,
    client: Arc<Client>,
    common: Arc<DeviceContext>,
}

impl Source for CountingClient {
    fn target<'a>(
        &'a self,
        etag: Option<&'a str>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<TargetAnswer, CloudError>> {
        async move {
            // Never closed, so this returns a permit.
            let _place = self.common.requests.acquire().await;
            let fetched = self.client.target(etag, limit).await;
            self.common.tally.polled();
            fetched
        }
        .boxed()
    }
}

impl Sink for CountingClient {
    fn uuid(&self) -> &DeviceUuid {
        self.client.uuid()
    }

    fn patch<'a>(
        &'a self,
        what: &'a str,
        body: &'a Value,
        limit: Duration,
    ) -> BoxFuture<'a, Result<(), CloudError>> {
        async move {
            let place = self.common.requests.acquire().await;
            self.client.patch(what, body, limit).await?;
            drop(place);
            let apps = body[self.client.uuid().as_str()]["apps"].as_object();
            let apps = apps.into_iter().flatten();
            let commits = apps.filter_map(|(_, app)| app["release_uuid"].as_str());
            self.common.tally.reported(self.number, commits);
            Ok(())
        }
        .boxed()
    }
}
