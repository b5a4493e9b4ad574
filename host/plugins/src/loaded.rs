//! One version of a plugin, ready to be called: checked, compiled and linked.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use compiled_code::{CodeDigest, CompileError, KeptFile};
use device_types::PluginLogLevel;
use parking_lot::Mutex;
use plugin_protocol::text::{LONGEST, one_line};
use plugin_protocol::{
    ActionAnswer, ActionCall, Blueprint, Bound, ComponentFacts, Failure, GuestCode, GuestPlugin,
    GuestRuntime, HostCalls, Origin, PATIENCE, ServedCall,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument as _;

use crate::actions::Actions;
use crate::config::HostServices;
use crate::failure;
use crate::grants;
use crate::hardware::Hardware;
use crate::identify::Identify;
use crate::limits::{self, Limits};
use crate::missing_export;
use crate::plugin_context::PluginContext;
use crate::plugin_fields::PluginFields;
use crate::plugin_host::PluginHost;
use crate::plugin_metrics::PluginMetrics;
use crate::plugin_shares::PluginShares;
use crate::policy::{Grants, PolicyFiles};
use crate::signature::Signatures;
use plugin_manifest::Manifest;

/// A version of a plugin that can be called.
pub(crate) struct LoadedPlugin {
    pub(crate) manifest: Manifest,
    /// SHA-256 of its file, in hexadecimal.
    pub(crate) digest: String,
    /// The signatures of its file.
    pub(crate) signatures: Signatures,
    pub(crate) limits: Limits,
    /// Whether the policy names this device's board for it: it then takes precedence over a provider for all boards.
    pub(crate) is_boards_own: bool,
    pub(crate) context: Arc<PluginContext>,
    pub(crate) host: Arc<PluginHost>,
    /// The code that it was created from.
    pub(crate) code: Arc<dyn GuestCode>,
    pub(crate) guest: Arc<dyn GuestPlugin>,
    /// How many concurrent calls it accepts, and how many more it accepts now.
    pub(crate) at_once: usize,
    pub(crate) calls: Arc<Semaphore>,
    pub(crate) counters: Arc<Counters>,
}

impl std::fmt::Debug for LoadedPlugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Loaded({} {})",
            self.manifest.name, self.manifest.version
        )
    }
}

impl LoadedPlugin {
    /// Records a call that failed: in the log, in the counters, and on the device if it is the plugin's fault. Clients
    /// and other plugins can make it fail as often as they can call it: beyond its share, failures are only counted.
    pub(crate) fn failed(&self, failure: &Failure) {
        let name = &self.manifest.name;
        if failure::is_for_debugging(failure) {
            failure::log(failure, name);
            return;
        }
        let is_the_plugins = failure.is_the_plugins();
        let last_error = failure::for_author(failure, name);
        if self.context.share.log.failures.take(name) {
            failure::log(failure, name);
            if is_the_plugins {
                self.show_failure(&failure.message(name), &last_error);
            }
        }
        if is_the_plugins {
            self.counters.failed(last_error);
        }
    }

    /// Records a call that answered that it could not do its work, in the same way as a failed call.
    pub(crate) fn failed_itself(&self, message: &str) {
        let name = &self.manifest.name;
        if self.context.share.log.failures.take(name) {
            tracing::warn!(plugin = %name, "{message}");
            self.show_failure(message, message);
        }
        self.counters.failed(message.to_owned());
    }

    /// `event` is for readers of the device's events, `line` for the plugin's author.
    fn show_failure(&self, event: &str, line: &str) {
        let name = &self.manifest.name;
        let line = one_line(line, LONGEST);
        let recent = &self.context.share.log.recent;
        recent.add(name, PluginLogLevel::Error, line);
        self.context.services.device.faulted(name, event);
    }

    /// Calls it to perform an action that it provides.
    pub(crate) async fn act(
        &self,
        origin: Origin,
        call: ActionCall,
    ) -> Result<ActionAnswer, Failure> {
        let plugin = self.manifest.name.as_str();
        let span = tracing::info_span!("plugin_call", plugin, action = %call.action());
        let act = async {
            self.make_folders().await;
            self.guest.act(ServedCall::next(origin), call).await
        };
        act.instrument(span).await
    }

    /// Creates missing folders if the policy says so. The plugin does not see a folder that cannot be created.
    pub(crate) async fn make_folders(&self) {
        let folders = self.context.grants.files.iter();
        let missing = folders.filter(|folder| folder.create && !folder.host.is_dir());
        for folder in missing {
            let host = folder.host.clone();
            // Whoever could put a link on the way to it would decide where root creates folders.
            let make = move || {
                secure_fs::check_location(&host).map_err(io::Error::other)?;
                fs::create_dir_all(host)
            };
            let made = self.context.share.jobs.run(make).await;
            if let Some(Err(error)) = made
                && self.context.may_log()
            {
                let (host, plugin) = (folder.host.display(), &*self.context.name);
                tracing::warn!(
                    plugin,
                    path = %host,
                    "failed to create the folder `{host}`: {error}"
                );
            }
        }
    }

    /// Waits until the plugin accepts another call.
    pub(crate) async fn permit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() {
            return Ok(permit);
        }
        let acquire = Arc::clone(&self.calls).acquire_owned();
        match tokio::time::timeout(PATIENCE, acquire).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Failure::Busy(Bound::Calls(self.at_once))),
        }
    }
}

/// A plugin's statistics since the supervisor started, over all its versions.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: AtomicU64,
    failures: AtomicU64,
    /// The time of all calls together.
    nanoseconds: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Counters {
    /// Counts a call, and the time until the returned timer is dropped: when the call is answered, or its caller is
    /// gone.
    pub(crate) fn called(self: &Arc<Self>) -> CallTimer {
        self.calls.fetch_add(1, Relaxed);
        CallTimer {
            counters: Arc::clone(self),
            begun: Instant::now(),
        }
    }

    /// Returns the time that all calls together have taken.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Relaxed))
    }

    /// Counts a failure of the plugin.
    fn failed(&self, message: String) {
        self.failures.fetch_add(1, Relaxed);
        *self.last_error.lock() = Some(message);
    }

    /// Returns the number of calls and failures, and the last failure.
    pub(crate) fn read(&self) -> (u64, u64, Option<String>) {
        let last = self.last_error.lock().clone();
        (self.calls.load(Relaxed), self.failures.load(Relaxed), last)
    }
}

/// Measures the time of a call.
#[must_use = "the call is over as soon as this is dropped"]
pub(crate) struct CallTimer {
    counters: Arc<Counters>,
    begun: Instant,
}

impl Drop for CallTimer {
    fn drop(&mut self) {
        let nanoseconds = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.counters.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }
}

/// Everything needed to load plugins.
pub(crate) struct LoadContext {
    pub(crate) runtime: Arc<dyn GuestRuntime>,
    /// How much of the board's memory plugins get unless the policy says otherwise, in bytes.
    pub(crate) memory_of_board: usize,
    pub(crate) shares: PluginShares,
    pub(crate) cache: compiled_code::Cache,
    pub(crate) policy_files: PolicyFiles,
    /// Whether files get what the policy grants to their names without being pinned.
    pub(crate) allow_unpinned: bool,
    pub(crate) plugin_config: toml::Table,
    /// The base of the policy's relative folders.
    pub(crate) host_root: PathBuf,
    /// With the folder of the LED class, unless a plugin's configuration names another one.
    pub(crate) hardware: Hardware,
    pub(crate) services: Arc<HostServices>,
    pub(crate) identify: Identify,
    pub(crate) actions: Actions,
}

/// The native code of a plugin; its file stays in the cache for as long as it may be called.
struct CachedCode {
    code: Arc<dyn GuestCode>,
    _kept: KeptFile,
}

impl GuestCode for CachedCode {
    fn facts(&self) -> &ComponentFacts {
        self.code.facts()
    }

    fn plugin(&self, blueprint: Blueprint, host: Arc<dyn HostCalls>) -> Arc<dyn GuestPlugin> {
        self.code.plugin(blueprint, host)
    }
}

impl LoadContext {
    /// Returns the native code of the component with this digest, if it was compiled before.
    pub(crate) async fn compiled(&self, digest: &CodeDigest) -> Option<Arc<dyn GuestCode>> {
        let file = self.cache.find_file(digest, compiled_code::Profile::Plugin);
        let file = file.await?;
        match self.open(&file).await {
            Ok(code) => Some(code),
            Err(reason) => {
                let path = file.display();
                tracing::info!(file = %path, "`{path}` does not load: {reason}");
                self.cache.discard(file).await;
                None
            }
        }
    }

    /// Returns the native code of the component in `file`, in this [edition](compiled_code::Source::edition) of it.
    pub(crate) async fn compile(
        &self,
        file: &Path,
        digest: CodeDigest,
        edition: String,
        wasm: &[u8],
    ) -> Result<Arc<dyn GuestCode>, CompileError> {
        let name = file.display().to_string();
        let source = compiled_code::Source::with_digest(&name, wasm, digest);
        let source = source.edition(edition);
        let cache = &self.cache;
        let compiled = cache
            .compile_file(&source, compiled_code::Profile::Plugin)
            .await?;
        match self.open(&compiled).await {
            Ok(code) => Ok(code),
            Err(reason) => {
                cache.discard(compiled).await;
                Err(cache.unusable(&name, reason))
            }
        }
    }

    async fn open(&self, compiled: &Path) -> Result<Arc<dyn GuestCode>, String> {
        let kept = self.cache.keep(compiled);
        let file = File::open(compiled).map_err(|error| format!("cannot be opened: {error}"))?;
        let code = self.runtime.open(file).await?;
        Ok(Arc::new(CachedCode { code, _kept: kept }))
    }

    /// Prepares a component with this manifest to be called with these grants.
    ///
    /// # Errors
    /// Why it could not be loaded, in words.
    pub(crate) fn link(
        &self,
        code: &Arc<dyn GuestCode>,
        digest: String,
        signatures: Signatures,
        manifest: Manifest,
        grants: Grants,
        counters: Arc<Counters>,
    ) -> Result<LoadedPlugin, String> {
        let facts = code.facts();
        let imports = &facts.imports;
        grants::check(
            &manifest,
            imports.iter().map(String::as_str),
            &grants.grants,
            &self.policy_files.owner,
        )?;

        if let Some(error) = &facts.link_error {
            return Err(error.clone());
        }
        missing_export::check(&manifest, facts)?;
        // The manifest is only trusted in the layout's files; others need the policy for more than the defaults.
        let own_limits = if grants.is_stock {
            manifest.limits.clone()
        } else {
            manifest.limits.within_defaults()
        };
        let limits = limits::resolve(&own_limits, &grants.limits);
        let is_boards_own = grants
            .boards
            .include(&self.services.device.identity().device_type);
        // However many calls a plugin asks for, others must get their turn.
        let most = self.runtime.slots() / 2 / facts.places.max(1) as usize;
        let at_once = limits.concurrency.min(most.max(1));
        let host = PluginHost::new(self.plugin_context(&manifest.name, grants));
        let host = Arc::new(host);
        let calls: Arc<dyn HostCalls> = Arc::clone(&host) as _;
        Ok(LoadedPlugin {
            guest: code.plugin(host.context.blueprint(&manifest, &limits), calls),
            code: Arc::clone(code),
            context: Arc::clone(&host.context),
            host,
            manifest,
            digest,
            signatures,
            limits,
            is_boards_own,
            at_once,
            calls: Arc::new(Semaphore::new(at_once)),
            counters,
        })
    }

    fn plugin_context(&self, name: &str, grants: Grants) -> PluginContext {
        let config = self.plugin_config.get(name).and_then(toml::Value::as_table);
        let led_folder = config
            .and_then(|table| table.get("led_folder"))
            .and_then(toml::Value::as_str);
        let mut hardware = self.hardware.clone();
        if let Some(folder) = led_folder {
            hardware.leds.folder = PathBuf::from(folder);
        }
        PluginContext {
            name: Arc::from(name),
            config: config
                .and_then(|table| serde_json::to_string(table).ok())
                .unwrap_or_else(|| "{}".to_owned()),
            hardware,
            grants,
            is_developers: self.allow_unpinned,
            share: self.shares.of(name),
            services: Arc::clone(&self.services),
            metrics: PluginMetrics::default(),
            fields: PluginFields::new(&self.shares.fields),
            identify: self.identify.clone(),
            actions: self.actions.clone(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
