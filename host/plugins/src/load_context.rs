//! What loading plugins takes: their native code, and what the host provides to each.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compiled_code::{CodeDigest, CompileError, KeptFile};
use plugin_manifest::Manifest;
use plugin_protocol::{Blueprint, ComponentFacts, GuestCode, GuestPlugin, GuestRuntime, HostCalls};
use tokio::sync::Semaphore;

use crate::actions::Actions;
use crate::config::HostServices;
use crate::grants;
use crate::hardware::Hardware;
use crate::holdings::InstanceHoldings;
use crate::identify::Identify;
use crate::limits;
use crate::loaded::{Counters, LoadedPlugin};
use crate::missing_export;
use crate::plugin_context::PluginContext;
use crate::plugin_fields::PluginFields;
use crate::plugin_host::PluginHost;
use crate::plugin_metrics::PluginMetrics;
use crate::plugin_shares::PluginShares;
use crate::policy::{Grants, PolicyFiles};
use crate::signature::Signatures;

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
        let context = Arc::new(self.plugin_context(&manifest.name, grants));
        let instances = Arc::<InstanceHoldings>::default();
        let host = PluginHost {
            context: Arc::clone(&context),
            instances: Arc::clone(&instances),
            identify: self.identify.clone(),
            actions: self.actions.clone(),
        };
        Ok(LoadedPlugin {
            guest: code.plugin(context.blueprint(&manifest, &limits), Arc::new(host)),
            code: Arc::clone(code),
            context,
            instances,
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
        }
    }
}
