//! Connects the device with its cloud: the identity from config.json and the store, the device's registration, and the
//! poll that passes targets to the reconciler.

mod follower;
mod introduction;
mod log_lines;
mod proxy;
mod state;

use std::error::Error;
use std::sync::Arc;

use anyhow::Result;
use api::App;
use cloud_link::{
    Client, CloudError, CloudLogSink, ConfigFile, Connectivity, Identity, PlainHttp, Poll,
    ProvisioningState, Queue, QueueError, establish, keep_tunnel, user_agent,
};
use model::compose::CloudAccess;
use model::{Branding, error_chain};
use os::ConfigJson;
use plugins::CloudRefusal;
use reconcile::Reconciler;
use secure_fs::SecureFile;
use serde_json::{Map, Value};
use store::{Store, TargetSource};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::configuration::Configuration;
use crate::facts::{Board, DeviceFacts};
use crate::host::Host;
use crate::host_settings::HostSettings;
use crate::plugin_fields::PluginFields;
use follower::{Follower, settings};
use introduction::DeviceIntroduction;
use log_lines::LogLines;
use proxy::Proxy;
use state::DeviceState;

/// The file of log lines that wait for the cloud, in the state folder.
const LOGS: &str = "logs-for-cloud";

/// The information about the cloud that is available before anything is started.
pub(crate) struct Membership {
    /// Whether the device gets its target from a cloud.
    pub(crate) managed: bool,
    identity: Option<Identity>,
    /// The reason why there is no identity although there should be one.
    problem: Option<String>,
}

impl Membership {
    /// Returns the access with which services use the cloud as this device.
    pub(crate) fn access(&self) -> Option<CloudAccess> {
        let identity = self.identity.as_ref()?;
        Some(CloudAccess {
            url: identity.endpoint.clone(),
            key: identity.device_key(),
        })
    }

    /// Reads the device's identity, and replaces the store's uuid with that of config.json if it contains one. Called
    /// before anything else reads it from the store.
    ///
    /// An unusable config.json is a problem but does not prevent the start: a device that followed a cloud continues
    /// with the last target, rather than entering a local mode without services.
    pub(crate) fn find(
        config: &ConfigJson,
        branding: &Branding,
        plain: PlainHttp,
        store: &mut Store,
    ) -> Result<Self> {
        let own = store.device_uuid().clone();
        let root_ca = format!("{}RootCA", branding.folder);
        match establish(&DeviceConfig(config.clone()), &own, &root_ca, plain) {
            Ok(established) => {
                store.adopt_device_uuid(&established.uuid)?;
                Ok(Membership {
                    managed: established.cloud.is_some(),
                    identity: established.cloud,
                    problem: None,
                })
            }
            Err(error) => {
                let error = error_chain(&error);
                tracing::error!("the device has no connection to a cloud: {error}");
                Ok(Membership {
                    managed: store.target(TargetSource::Cloud)?.is_some(),
                    identity: None,
                    problem: Some(error),
                })
            }
        }
    }

    /// Starts to follow the cloud, if there is one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn follow(self, context: CloudContext<'_>) -> Result<Cloud> {
        let CloudContext {
            configuration,
            store,
            reconciler,
            board,
            stop,
            ..
        } = context;
        let branding = &configuration.branding;
        let Some(identity) = self.identity else {
            return Ok(Cloud {
                link: None,
                problem: self.problem,
            });
        };
        tracing::info!(
            uuid = %identity.uuid,
            cloud = identity.endpoint,
            "this device follows its cloud"
        );
        let os = board.os_version.as_deref();
        let agent = user_agent(&branding.api_level, os, board.variant.as_deref());
        let endpoint = identity.endpoint.clone();
        let client = Arc::new(Client::new(identity, &agent));
        let follower = Arc::new(Follower(reconciler.clone()));
        let connectivity = Connectivity::start(&endpoint, follower.clone(), stop.clone());
        let queue = Queue::start(
            store.clone(),
            client.clone(),
            follower.clone(),
            stop.clone(),
        )?;
        let introduction = DeviceIntroduction {
            board: board.clone(),
            facts: context.facts.clone(),
            settings: context.host_settings.clone(),
            branding: branding.clone(),
        };
        let provisioned = ProvisioningState::start(
            client.clone(),
            Arc::new(DeviceConfig(context.host.config_json.clone())),
            Arc::new(store.clone()),
            Arc::new(introduction),
            follower.clone(),
            stop.clone(),
        );
        let ready = provisioned.ready.clone();
        cloud_link::report(
            client.clone(),
            Arc::new(DeviceState::new(&context)),
            follower.clone(),
            context.reported.clone(),
            ready.clone(),
            stop.clone(),
        );
        cloud_link::upload_logs(
            Arc::new(CloudLogSink(client.clone())),
            Arc::new(LogLines::new(reconciler)),
            configuration.state_dir.join(LOGS),
            ready.clone(),
            stop.clone(),
        );
        let poll = Poll::start(client.clone(), follower, ready.clone(), stop.clone());
        begin_again(
            provisioned.renewed,
            context.begin_again.clone(),
            stop.clone(),
        );
        Ok(Cloud {
            link: Some(Link {
                client,
                poll,
                queue,
                connectivity,
                ready,
                protocol: branding.tunnel_protocol(),
            }),
            problem: None,
        })
    }
}

/// The parts that are needed to follow the cloud.
pub(crate) struct CloudContext<'a> {
    pub(crate) configuration: &'a Configuration,
    pub(crate) host: &'a Host,
    pub(crate) store: &'a Store,
    pub(crate) reconciler: &'a Reconciler,
    pub(crate) board: &'a Board,
    pub(crate) facts: &'a Arc<DeviceFacts>,
    pub(crate) host_settings: &'a HostSettings,
    pub(crate) plugin_fields: &'a PluginFields,
    /// The file for the state that the cloud has accepted.
    pub(crate) reported: Option<SecureFile>,
    /// Cancelled when the supervisor must restart because the device's identity has changed.
    pub(crate) begin_again: &'a CancellationToken,
    pub(crate) stop: &'a CancellationToken,
}

fn begin_again(renewed: CancellationToken, begin: CancellationToken, stop: CancellationToken) {
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        renewed.cancelled().await;
        begin.cancel();
    }));
}

/// The cloud of the running device.
pub(crate) struct Cloud {
    /// `None` if there is no cloud.
    link: Option<Link>,
    problem: Option<String>,
}

struct Link {
    client: Arc<Client>,
    poll: Poll,
    queue: Queue,
    connectivity: Connectivity,
    /// Cancelled once the cloud knows the device.
    ready: CancellationToken,
    /// The tunnel's WebSocket subprotocol.
    protocol: String,
}

impl Cloud {
    /// Keeps the tunnel open through which the cloud sends requests to `app`, while the effective variables enable it
    /// (docs/spec/device.md#config-variables, `SUPERVISOR_VPN_CONTROL`); completes when it is closed after `stop`.
    pub(crate) async fn keep_tunnel(
        &self,
        app: App,
        reconciler: &Reconciler,
        stop: CancellationToken,
    ) {
        let Some(link) = &self.link else { return };
        let mut settings = reconciler.effective_settings();
        let (publish, is_enabled) = watch::channel(settings.borrow_and_update().settings.vpn);
        let following = async move {
            while settings.changed().await.is_ok() {
                publish.send_replace(settings.borrow_and_update().settings.vpn);
            }
            std::future::pending::<()>().await;
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(following));
        let proxy = Proxy::new(app);
        let tunnel = keep_tunnel(
            link.client.clone(),
            link.protocol.clone(),
            is_enabled,
            move |request| proxy.clone().answer(request),
            link.ready.clone(),
            stop,
        );
        let _ = tunnel.await;
    }

    /// Handles `POST /v1/update`; returns whether anything is done. Without a cloud the current target is applied
    /// again.
    pub(crate) fn update(&self, reconciler: &Reconciler, force: bool, cancel: bool) -> bool {
        if let Some(link) = &self.link {
            return link.poll.trigger(force, cancel);
        }
        let instant = settings(reconciler).instant_updates;
        let triggers = force || instant;
        if triggers {
            reconciler.trigger(force, cancel);
        }
        triggers
    }

    /// Returns this device's rows of a kind of record.
    pub(crate) async fn records(
        &self,
        reconciler: &Reconciler,
        kind: &str,
        fields: &[String],
    ) -> Result<Vec<Value>, CloudRefusal> {
        let link = self.link.as_ref().ok_or(CloudRefusal::Unmanaged)?;
        let limit = settings(reconciler).request_timeout;
        let rows = link.client.records(kind, fields, limit).await;
        rows.map_err(|error| match error {
            CloudError::Unprovisioned => CloudRefusal::Unprovisioned,
            CloudError::Invalid(why) => CloudRefusal::Refused(why),
            other => CloudRefusal::Unreachable(error_chain(&other)),
        })
    }

    /// Queues values for the cloud.
    pub(crate) async fn queue(
        &self,
        kind: &str,
        values: Vec<(String, String)>,
    ) -> Result<(), CloudRefusal> {
        let link = self.link.as_ref().ok_or(CloudRefusal::Unmanaged)?;
        let queued = link.queue.add(kind, values).await;
        queued.map_err(|error| match error {
            QueueError::Store(cause) => {
                tracing::error!(%cause, "failed to store data for the cloud");
                CloudRefusal::Other("the store failed".to_owned())
            }
            refused => CloudRefusal::Refused(refused.to_string()),
        })
    }

    /// Returns a watch on the reason why it cannot be reached; `None` if there is no cloud.
    pub(crate) fn connection(&self) -> Option<watch::Receiver<Option<String>>> {
        let link = self.link.as_ref()?;
        Some(link.connectivity.problems())
    }

    /// Returns its problems, one sentence each.
    pub(crate) fn problems(&self) -> Vec<String> {
        let poll = self.link.as_ref().and_then(|link| link.poll.problem());
        let unreachable = self
            .link
            .as_ref()
            .and_then(|link| link.connectivity.problem());
        let problems = self.problem.iter().cloned();
        problems.chain(poll).chain(unreachable).collect()
    }
}

/// config.json as the storage of the cloud's identity.
struct DeviceConfig(ConfigJson);

impl ConfigFile for DeviceConfig {
    fn read(&self) -> Result<Map<String, Value>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.read()?)
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut Map<String, Value>),
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.0.update(|map| change(map))?)
    }
}
