//! Starting a host: its folder, its compiler, and its plugins.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use os::{Journal, MethodError, Rehearsal, SimulatedGpio, SimulatedI2c, UnitState};
use plugin_protocol::GuestRuntime;
use plugin_runtime::{Resources, Runtime};
use plugins::{HostServices, Identity, Manifest, NoCloud, Plugins, PluginsConfig};
use supervisor_testing::protocol::{DbusMethod, Setup};

use super::EmbeddedHost;
use crate::action_observer::ObserveActions;
use crate::call_filter::FilterCalls;
use crate::fake_cloud::FakeCloud;
use crate::fakes::{FakeApi, FakeDevice, FakeHostName, FakeHttp, FakeLocks};
use crate::running::{DeviceFolder, RunningHost};
use crate::wrapped_runtime::WrappedRuntime;

impl EmbeddedHost {
    /// Loads the plugins.
    ///
    /// # Panics
    /// If one of them does not load, with the text that a device's log would contain.
    pub async fn start(self) -> RunningHost {
        match self.try_start().await {
            Ok(running) => running,
            Err(error) => panic!("{error:#}"),
        }
    }

    /// Like [`EmbeddedHost::start`], for tests of reasons why a plugin does not load.
    ///
    /// # Errors
    /// The text that a device's log would contain.
    pub async fn try_start(self) -> Result<RunningHost> {
        let folder = match &self.folder {
            Some(folder) => DeviceFolder::Kept(folder.clone()),
            None => DeviceFolder::Temporary(
                tempfile::tempdir().context("failed to create a temporary folder")?,
            ),
        };
        let setup = self.setup;
        fill(folder.path(), &setup)?;
        let path = |name: &str| folder.path().join(name);
        let locks = Arc::<FakeLocks>::default();
        let mut configuration: toml::Table = setup
            .configuration
            .parse()
            .context("invalid configuration")?;
        let plugin_config = match configuration.remove("plugins") {
            Some(toml::Value::Table(table)) => table,
            _ => toml::Table::new(),
        };
        let compiler = self.compiler.map_or_else(compiler, Ok)?;
        let cache = compiled_code::Cache::new(
            self.code_cache.unwrap_or_else(|| path("compiled")),
            compiler,
            compiled_code::Limits::default(),
        )?;
        let cache = if self.reuses_functions {
            cache.reusing_functions_from(compiled_code::LARGE_COMPONENT)
        } else {
            cache
        };
        let store = store::Store::open(&path("state"))?.store;
        let os = Arc::new(Rehearsal::new(path("root")));
        for [name, load, active, sub] in setup.units {
            os.set_unit(name.parse()?, UnitState::new(&load, &active, &sub));
        }
        for DbusMethod { names, answer } in setup.dbus {
            let refused = |[name, message]: [String; 2]| MethodError::Refused { name, message };
            os.answer_method(names, answer.map_err(refused));
        }
        let gpio = SimulatedGpio::default();
        for (name, is_on) in setup.gpio {
            gpio.add(&name, is_on);
        }
        let i2c = SimulatedI2c::default();
        for (bus, address, registers) in setup.i2c {
            i2c.add(&bus, address);
            // The chip exists: it was just added.
            let _ = i2c.set(&bus, address, 0, &registers);
        }
        let cloud = match (self.cloud, setup.cloud) {
            (Some(cloud), _) => cloud,
            (None, Some(records)) => Arc::new(FakeCloud::new(records)),
            (None, None) => Arc::new(NoCloud),
        };
        let answers = setup.api.into_iter();
        let answers = answers.map(|(request, status, body)| (request, (status, body)));
        let identity = setup.identity;
        let runtime = Runtime::new(Resources {
            slots: plugins::DEFAULT_SLOTS,
            memory: 128 << 20,
            return_memory: None,
        })?;
        let mut runtime: Arc<dyn GuestRuntime> = Arc::new(runtime);
        if let Some(filter) = self.call_filter {
            let wrapper = Arc::new(FilterCalls(filter));
            runtime = Arc::new(WrappedRuntime { runtime, wrapper });
        }
        if let Some(observer) = self.action_observer {
            let wrapper = Arc::new(ObserveActions(observer));
            runtime = Arc::new(WrappedRuntime { runtime, wrapper });
        }
        let plugins = Plugins::start(PluginsConfig {
            runtime,
            plugin_dirs: vec![path("plugins")],
            policy: path("policy.toml"),
            stock_plugins: path("stock-plugins.toml"),
            allow_unpinned: setup.developer_mode,
            cache,
            state_dir: path("state"),
            host_root: path("root"),
            plugin_config,
            services: HostServices {
                data: Arc::new(store),
                device: Arc::new(FakeDevice {
                    identity: Identity {
                        uuid: identity.uuid,
                        name: identity.name,
                        device_type: identity.device_type,
                        arch: identity.arch,
                    },
                    state: setup.state,
                }),
                cloud,
                os: os.clone(),
                locks: locks.clone(),
                host_name: Arc::new(FakeHostName {
                    file: path("root/etc/hostname"),
                }),
                journal: Journal::new(
                    setup.journal_program.unwrap_or_else(|| "journalctl".into()),
                    path("root"),
                ),
                http: Arc::new(FakeHttp::new(setup.http)),
                api: Arc::new(FakeApi(answers.collect())),
                gpio: Arc::new(gpio.clone()),
                i2c: Arc::new(i2c.clone()),
            },
            core_routes: Vec::new(),
            board_memory: 1 << 30,
        })?;
        plugins.wait_until_loaded().await;
        let mut problems = plugins.problems();
        problems.retain(|problem| problem != plugins::UNPINNED);
        if !problems.is_empty() {
            bail!("{}", problems.join("\n"));
        }
        Ok(RunningHost {
            plugins,
            os,
            gpio,
            i2c,
            locks,
            folder,
        })
    }
}

/// Writes the files of the device: plugins, their policy, LEDs, and those of the host.
fn fill(folder: &Path, setup: &Setup) -> Result<()> {
    let plugins = folder.join("plugins");
    // The plugins of an earlier host do not belong to this one.
    if plugins.exists() {
        std::fs::remove_dir_all(&plugins)?;
    }
    std::fs::create_dir_all(&plugins)?;
    for component in &setup.plugins {
        let name = component
            .file_name()
            .context("a plugin's file has a name")?;
        std::fs::copy(component, plugins.join(name))
            .with_context(|| format!("cannot copy `{}`", component.display()))?;
    }
    std::fs::write(folder.join("policy.toml"), &setup.policy)?;
    let stock = if setup.pinned_by_policy {
        String::new()
    } else {
        stock_plugins(&setup.plugins)?
    };
    std::fs::write(folder.join("stock-plugins.toml"), stock)?;
    for (name, brightness, max) in &setup.leds {
        let led = below(&folder.join("root/sys/class/leds"), name)
            .with_context(|| format!("`{name}` is not the name of an LED"))?;
        std::fs::create_dir_all(&led)?;
        std::fs::write(led.join("brightness"), format!("{brightness}\n"))?;
        std::fs::write(led.join("max_brightness"), format!("{max}\n"))?;
        std::fs::write(led.join("trigger"), "[none] timer heartbeat\n")?;
    }
    for (file, content) in &setup.files {
        let file = below(&folder.join("root"), file.trim_start_matches('/'))
            .with_context(|| format!("`{file}` is not a path on a device"))?;
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&file, content)
            .with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    Ok(())
}

/// Returns a path below `folder`; `None` if it is outside of it, or is the folder itself. The description of a device may
/// come from somebody else.
fn below(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut parts = Path::new(path).components();
    let is_below = !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
    is_below.then(|| folder.join(path))
}

/// Returns the list of stock plugins of a layout that ships with these files. Files that are not plugins are left out.
fn stock_plugins(components: &[PathBuf]) -> Result<String> {
    let mut plugins = toml::Table::new();
    for component in components {
        let wasm = std::fs::read(component)
            .with_context(|| format!("cannot read `{}`", component.display()))?;
        if let Ok(manifest) = Manifest::from_wasm(&wasm) {
            let mut stock = toml::Table::new();
            let routes = manifest
                .routes
                .iter()
                .map(|route| route.pattern.to_string());
            let actions = manifest.provides.iter().map(|action| action.to_string());
            // With the board `*`, a plugin could not take precedence over others.
            let boards = manifest.boards.into_iter().filter(|board| board != "*");
            for (key, values) in [
                ("sha256", vec![compiled_code::digest(&wasm)]),
                ("routes", routes.collect()),
                ("provides", actions.collect()),
                ("boards", boards.collect()),
            ] {
                stock.insert(key.to_owned(), values.into());
            }
            plugins.insert(manifest.name, stock.into());
        }
    }
    let mut list = toml::Table::new();
    list.insert("plugins".to_owned(), plugins.into());
    Ok(list.to_string())
}

/// Finds the program `supervisor-compile`.
fn compiler() -> Result<PathBuf> {
    if let Some(dist) = std::env::var_os("SUPERVISOR_DIST") {
        return Ok(Path::new(&dist).join("bin/supervisor-compile"));
    }
    let this = std::env::current_exe().context("no path of this test's program")?;
    this.ancestors()
        .map(|folder| folder.join("dist/bin/supervisor-compile"))
        .find(|file| file.is_file())
        .context(
            "no compiler for plugins: run `cargo xtask build`, or set SUPERVISOR_DIST to a layout",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_device_are_below_its_folder() {
        let folder = Path::new("/tmp/device");
        assert_eq!(
            below(folder, "run/x").as_deref(),
            Some(Path::new("/tmp/device/run/x"))
        );
        assert!(below(folder, "acme:green:left").is_some());
        for path in ["", "/", "/etc/passwd", "..", "../x", "run/../../x", "./x"] {
            assert_eq!(below(folder, path), None, "{path}");
        }
    }
}
