//! The layout in `target/dist`: the programs, the plugins with the list of which files they are, and the
//! default policy, each where the supervisor looks for it relative to its own place, and the list of what
//! they are made of.
//!
//! The resident programs and the compiler are built by separate cargo invocations: one alone would unify
//! wasmtime's features and put the code generator into the resident process.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cargo::{self, Steps, WASM_TARGET};
use crate::{sbom, simulate, stock_plugins};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Optimize and strip the programs
    #[arg(long)]
    pub(crate) release: bool,
}

/// Where a built layout is.
pub(crate) struct Layout {
    pub(crate) folder: PathBuf,
}

impl Layout {
    pub(crate) fn supervisor(&self) -> PathBuf {
        self.folder.join("bin/supervisor")
    }
}

/// The folder of components that cargo leaves.
pub(crate) fn components_folder() -> PathBuf {
    cargo::target_folder().join(WASM_TARGET).join("wasm")
}

/// The programs that stay on a device while it runs, by their crates.
const RESIDENT: [&str; 2] = ["supervisor", "supervisor-wasm"];

/// The steps that [`build`] says it takes.
pub(crate) const STEPS: usize = 6;
/// Those of them that make the cloud's programs.
const CLOUD_STEPS: usize = 2;

pub(crate) fn build(arguments: &Arguments) -> Result<Layout> {
    build_in(arguments, &mut Steps::new(STEPS))
}

/// The layout that an earlier build left.
///
/// # Errors
/// Where there is none, or a part of one.
pub(crate) fn built() -> Result<Layout> {
    let folder = cargo::target_folder().join("dist");
    for program in [
        "supervisor",
        "supervisor-wasm",
        "supervisor-compile",
        "fleet",
        "fleet-cloud",
    ] {
        let file = folder.join("bin").join(program);
        if !file.is_file() {
            bail!(
                "there is no `{}`: run `cargo xtask build` first",
                file.display()
            );
        }
    }
    Ok(Layout { folder })
}

/// As [`build`] without the cloud's programs, which come from the build of the tests
/// ([`install_programs_of_tests`]): each build by itself would make nearly all of its dependencies anew.
pub(crate) fn build_for_tests() -> Result<Layout> {
    let mut steps = Steps::new(STEPS - CLOUD_STEPS);
    build_for_devices(&Arguments { release: false }, &mut steps)
}

/// Puts the cloud's programs, as the tests have built them, into the layout.
pub(crate) fn install_programs_of_tests(layout: &Layout) -> Result<()> {
    install_programs_of_cloud(layout, "debug", "debug")
}

/// As [`build`], as the first [`STEPS`] of more.
pub(crate) fn build_in(arguments: &Arguments, steps: &mut Steps) -> Result<Layout> {
    let profile = profile(arguments);

    steps.begin("the command line of the cloud");
    // By itself: what it asks of shared crates is not for the supervisor.
    let mut fleet = cargo::cargo(["build", "--package", "fleet"]);
    if arguments.release {
        fleet.arg("--release");
    }
    cargo::finish(fleet)?;

    steps.begin("the cloud");
    // It has another profile than what runs on devices: for speed rather than size.
    let mut cloud = cargo::cargo(["build", "--package", "fleet-cloud"]);
    if arguments.release {
        cloud.args(["--profile", simulate::PROFILE]);
    }
    cargo::finish(cloud)?;

    let layout = build_for_devices(arguments, steps)?;
    let cloud_profile = if arguments.release {
        simulate::PROFILE
    } else {
        profile
    };
    install_programs_of_cloud(&layout, profile, cloud_profile)?;
    sbom::write(&layout.folder)?;
    Ok(layout)
}

/// The folder beneath the target folder where cargo leaves programs.
fn profile(arguments: &Arguments) -> &'static str {
    if arguments.release {
        "release"
    } else {
        "debug"
    }
}

fn install_programs_of_cloud(layout: &Layout, fleet: &str, cloud: &str) -> Result<()> {
    for (program, profile) in [("fleet", fleet), ("fleet-cloud", cloud)] {
        install(
            &cargo::target_folder().join(profile).join(program),
            &layout.folder.join("bin").join(program),
        )?;
    }
    Ok(())
}

/// The supervisor, the compiler of plugins, the plugins and the policy.
fn build_for_devices(arguments: &Arguments, steps: &mut Steps) -> Result<Layout> {
    let folder = cargo::target_folder().join("dist");
    let target = cargo::target_folder();

    steps.begin("the supervisor and what runs components for it");
    cargo::finish(cargo::cargo(resident_arguments(arguments)))?;
    if arguments.release {
        for program in RESIDENT {
            refuse_what_is_for_tests(&target.join("release").join(program))?;
        }
    }

    steps.begin("the compiler of plugins");
    cargo::finish(cargo::cargo([
        "build",
        "--profile",
        "compiler",
        "--package",
        "supervisor-compile",
    ]))?;

    steps.begin("the plugins");
    let plugins = crates_in("plugins")?;
    build_components(&plugins)?;

    steps.begin("the layout");
    for program in RESIDENT {
        install(
            &target.join(profile(arguments)).join(program),
            &folder.join("bin").join(program),
        )?;
    }
    install(
        &target.join("compiler/supervisor-compile"),
        &folder.join("bin/supervisor-compile"),
    )?;
    for plugin in &plugins {
        let file = component_file(plugin);
        install(
            &components_folder().join(&file),
            &folder.join("plugins").join(&file),
        )?;
    }
    remove_strangers(&folder.join("plugins"), &plugins)?;
    stock_plugins::write(&folder, &plugins)?;
    install(
        &cargo::repository().join("packaging/policy.toml"),
        &folder.join("policy.toml"),
    )?;
    Ok(Layout { folder })
}

/// What builds the programs that stay. The layout that is not optimized is what tests run, and one of them has
/// the supervisor kill itself.
fn resident_arguments(arguments: &Arguments) -> Vec<&'static str> {
    let mut build = vec!["build"];
    for program in RESIDENT {
        build.extend(["--package", program]);
    }
    build.extend(if arguments.release {
        &["--release"][..]
    } else {
        &["--features", "supervisor/abort-at"]
    });
    build
}

/// Names every variable by which a test has a program do what nobody else may.
const FOR_TESTS: &str = "SUPERVISOR_TEST_";

/// Looks into a program that is shipped for what tests alone may have of it.
///
/// # Errors
/// Where it has it.
fn refuse_what_is_for_tests(program: &Path) -> Result<()> {
    let bytes =
        fs::read(program).with_context(|| format!("failed to read `{}`", program.display()))?;
    let has_it = bytes
        .windows(FOR_TESTS.len())
        .any(|window| window == FOR_TESTS.as_bytes());
    if has_it {
        bail!(
            "`{}` reads a variable `{FOR_TESTS}…`, which is for tests alone: build it without the feature that has it",
            program.display()
        );
    }
    Ok(())
}

/// Builds crates as components, with the profile and target that they are shipped with.
pub(crate) fn build_components(packages: &[String]) -> Result<()> {
    cargo::add_target(WASM_TARGET)?;
    let mut command = cargo::cargo(["build", "--profile", "wasm", "--target", WASM_TARGET]);
    for package in packages {
        command.args(["--package", package]);
    }
    cargo::finish(command)
}

/// The names of the crates in one folder of the repository, which are their folders' names.
pub(crate) fn crates_in(folder: &str) -> Result<Vec<String>> {
    let path = cargo::repository().join(folder);
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).with_context(|| format!("failed to list `{folder}`"))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Everything that tests load and nobody ships: examples, and components that misbehave on purpose.
pub(crate) fn guest_crates() -> Result<Vec<String>> {
    let mut guests = crates_in("examples")?;
    guests.extend(
        crates_in("tests")?
            .into_iter()
            .filter(|name| name.ends_with("guests")),
    );
    Ok(guests)
}

/// Cargo names a library's component with underscores and a program's as it is.
pub(crate) fn component_file(package: &str) -> String {
    format!("{}.wasm", package.replace('-', "_"))
}

/// Copies beside the place and renames, so that a program that runs from there is not disturbed.
pub(crate) fn install(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("failed to create `{}`", parent.display()))?;
    }
    // Another of us may be at it.
    let beside = to.with_extension(format!("{}.new", std::process::id()));
    fs::copy(from, &beside).with_context(|| {
        format!(
            "failed to copy `{}` to `{}`",
            from.display(),
            beside.display()
        )
    })?;
    fs::rename(&beside, to).with_context(|| format!("failed to put `{}` in place", to.display()))
}

/// A plugin that the repository no longer has must not live on in the layout.
fn remove_strangers(folder: &Path, plugins: &[String]) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // What somebody is about to put in place is no plugin yet.
        let is_plugin = name.ends_with(".wasm");
        if is_plugin && !plugins.iter().any(|plugin| component_file(plugin) == name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l10_what_is_shipped_is_built_without_what_tests_alone_need() {
        let shipped = resident_arguments(&Arguments { release: true });
        assert!(shipped.contains(&"--release"), "{shipped:?}");
        assert!(!shipped.contains(&"--features"), "{shipped:?}");
        let tested = resident_arguments(&Arguments { release: false });
        assert!(tested.contains(&"supervisor/abort-at"), "{tested:?}");
    }

    #[test]
    fn l10_a_program_that_a_test_can_kill_is_not_shipped() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("supervisor");
        fs::write(&program, b"\x7fELF..SUPERVISOR_MODE..")?;
        refuse_what_is_for_tests(&program)?;
        fs::write(&program, b"\x7fELF..SUPERVISOR_TEST_ABORT_AT..")?;
        let refused = refuse_what_is_for_tests(&program);
        assert!(refused.is_err_and(|error| error.to_string().contains("for tests alone")));
        Ok(())
    }
}
