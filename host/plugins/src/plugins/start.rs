//! The start of the plugins: what watches, loads and publishes them, and what these share.

use std::sync::Arc;

use parking_lot::Mutex;
use plugin_manifest::PatternError;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

use super::installation::InstallPlaces;
use super::{BackgroundTasks, Plugins, SharedPlugins, UNPINNED};
use crate::actions::Actions;
use crate::bounds;
use crate::config::PluginsConfig;
use crate::events::Events;
use crate::hardware::Hardware;
use crate::hardware::gpio_lines::GpioLines;
use crate::hardware::led_memory::LedMemory;
use crate::hardware::leds::Leds;
use crate::identify::Identify;
use crate::kept::KeptVersions;
use crate::load_context::LoadContext;
use crate::loader::Loader;
use crate::log_lines::PluginLogs;
use crate::pending_writes::PendingWrites;
use crate::plugin_shares::PluginShares;
use crate::policy::PolicyFiles;
use crate::reload::Reload;
use crate::routes::ReservedRoutes;
use crate::settled_file::PluginFolders;
use crate::table::Table;
use crate::watch::Watch;

/// Why plugins cannot be served at all. A plugin that cannot be loaded is not such an error: it is in the report and in
/// [`Plugins::problems`].
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A core route is not a valid pattern.
    #[error(transparent)]
    CoreRoute(#[from] PatternError),
}

impl Plugins {
    /// Begins to load the plugins, one by one, and watches their folders and the policy from now on. Must be called in
    /// a tokio runtime.
    ///
    /// # Errors
    /// [`StartError`]. A plugin that cannot be loaded is reported and skipped.
    pub fn start(config: PluginsConfig) -> Result<Plugins, StartError> {
        let reserved = ReservedRoutes::new(&config.core_routes)?;
        if config.allow_unpinned {
            tracing::warn!("{UNPINNED}");
        }
        let runtime = config.runtime;
        let actions = Actions::default();
        let events = Events::default();
        let identify = Identify::new(&actions);
        let changed = Arc::new(Notify::new());
        let allow_unpinned = config.allow_unpinned;
        // Watching begins before the first listing, so that no change in between goes unnoticed.
        let policy_files = PolicyFiles {
            owner: config.policy,
            stock: config.stock_plugins,
        };
        let pending_writes = PendingWrites::default();
        let watch = Watch::start(
            &config.plugin_dirs,
            &policy_files,
            Arc::clone(&changed),
            pending_writes.clone(),
        );
        let logs = PluginLogs::default();
        let led_memory = Arc::new(LedMemory::open(&config.state_dir));
        let gpio_lines = Arc::<GpioLines>::default();
        let kept = KeptVersions::open(&config.state_dir);
        let writes = kept.writes();
        let install_places = InstallPlaces {
            folder: config.plugin_dirs.first().cloned(),
            state_dir: config.state_dir,
            policy_files: policy_files.clone(),
            turn: Arc::new(Semaphore::new(1)),
        };
        let load_context = Arc::new(LoadContext {
            runtime: Arc::clone(&runtime),
            memory_of_board: bounds::memory_of_board(config.board_memory),
            shares: PluginShares::new(logs.clone(), config.services.journal.clone()),
            cache: config.cache,
            policy_files,
            allow_unpinned: config.allow_unpinned,
            plugin_config: config.plugin_config,
            hardware: Hardware {
                leds: Leds {
                    folder: config.host_root.join("sys/class/leds"),
                    memory: Arc::clone(&led_memory),
                },
                gpio_lines: Arc::clone(&gpio_lines),
                i2c_turns: Arc::default(),
            },
            host_root: config.host_root,
            services: Arc::new(config.services),
            identify: identify.clone(),
            actions: actions.clone(),
        });
        let (watch, watch_problem) = match watch {
            Ok(watch) => (Some(watch), None),
            Err(error) => {
                let problem = format!(
                    "changes of plugins and policy are not noticed until a restart: {error}"
                );
                tracing::error!("{problem}");
                (None, Some(problem))
            }
        };
        let folders = PluginFolders {
            paths: config.plugin_dirs,
            pending_writes,
        };
        let (publisher, table) = watch::channel(Arc::new(Table::unread()));
        let busy_since = Arc::new(Mutex::new(Some(Instant::now())));
        let reload = Reload {
            busy_since: Arc::clone(&busy_since),
            recent: logs.recent.clone(),
            table: publisher,
            actions: actions.clone(),
            events: events.clone(),
            gpio_lines,
            loader: Loader::new(load_context, kept, folders, reserved),
        };
        let reloading = Some(tokio::spawn(reload.run(watch, changed)));
        let background = BackgroundTasks {
            reloading: Mutex::new(reloading),
            writes,
        };
        Ok(Plugins {
            inner: Arc::new(SharedPlugins {
                table,
                runtime,
                identify,
                actions,
                events,
                led_memory,
                background,
                busy_since,
                allow_unpinned,
                recent: logs.recent,
                install_places,
                watch_problem,
            }),
        })
    }
}
