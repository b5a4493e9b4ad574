//! The layout in `target/dist`: the programs, the plugins with the list of which files they are, and the
//! default policy, each where the supervisor looks for it relative to its own place, and the list of what
//! they are made of.
//!
//! The compiler is built by a cargo invocation of its own: one alone would unify wasmtime's features and put the code
//! generator into what runs components.

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
/// The programs of the cloud, by their crates.
const OF_CLOUD: [&str; 2] = ["fleet", "fleet-cloud"];

/// The program of plugin authors, by its crate. It finds the compiler beside it.
const OF_AUTHORS: [&str; 1] = ["supervisor-plugin"];

/// Leaves out the compiler that the tool of plugin authors contains where it is installed alone: with it, cargo would
/// give a code generator to all programs that are built at the same time.
pub(crate) const WITHOUT_COMPILER: &str = "--no-default-features";
/// What a supervisor has that tests run: one of them has it kill itself.
pub(crate) const FEATURES_FOR_TESTS: [&str; 3] =
    [WITHOUT_COMPILER, "--features", "supervisor/abort-at"];

/// The steps that [`build_in`] announces.
pub(crate) const STEPS: usize = 4;

pub(crate) fn build(arguments: &Arguments) -> Result<Layout> {
    build_in(arguments, &mut Steps::new(STEPS))
}

/// The layout that an earlier build left.
///
/// # Errors
/// Where there is none, or a part of one.
pub(crate) fn built() -> Result<Layout> {
    let folder = cargo::target_folder().join("dist");
    for program in sbom::PROGRAMS {
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

/// As [`build`] without the programs, which come from the build of the tests ([`install_programs`]): a build of their own
/// would compile nearly all of their dependencies once more.
pub(crate) fn build_for_tests() -> Result<Layout> {
    let mut steps = Steps::new(STEPS - 1);
    build_around_programs(&Arguments { release: false }, &mut steps)
}

/// As [`build`], as the first [`STEPS`] of more.
pub(crate) fn build_in(arguments: &Arguments, steps: &mut Steps) -> Result<Layout> {
    steps.begin("the programs of devices and of the cloud");
    for program in program_builds(arguments) {
        cargo::finish(cargo::cargo(program))?;
    }
    let layout = build_around_programs(arguments, steps)?;
    install_programs(&layout, arguments)?;
    sbom::write(&layout.folder)?;
    Ok(layout)
}

/// The profile of the programs, but of the cloud's where it is shipped.
fn profile(arguments: &Arguments) -> &'static str {
    if arguments.release { "release" } else { "dev" }
}

/// The folder beneath the target folder where cargo leaves what it builds with a profile.
fn folder_of(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

/// The profile of `supervisor-compile`. What is not shipped shares the profile of the other programs, which optimizes the
/// code generator: dependencies that both have with the same features are built once.
pub(crate) fn compiler_profile(arguments: &Arguments) -> &'static str {
    if arguments.release { "compiler" } else { "dev" }
}

/// What builds all programs but the compiler, as arguments of cargo.
///
/// What is shipped takes four builds: what the programs of the cloud and of authors ask of shared crates is not for
/// devices, and the cloud is built for speed rather than size. What is not shipped is built at once, so that each dependency is compiled
/// once.
fn program_builds(arguments: &Arguments) -> Vec<Vec<&'static str>> {
    let build = |programs: &[&'static str], more: &[&'static str]| {
        let packages = programs.iter().flat_map(|program| ["--package", *program]);
        [&["build"][..], &packages.collect::<Vec<_>>(), more].concat()
    };
    if arguments.release {
        vec![
            build(&["fleet"], &["--release"]),
            build(&["fleet-cloud"], &["--profile", simulate::PROFILE]),
            build(&RESIDENT, &["--release"]),
            build(&OF_AUTHORS, &["--release", WITHOUT_COMPILER]),
        ]
    } else {
        vec![build(
            &[&OF_CLOUD[..], &RESIDENT, &OF_AUTHORS].concat(),
            &FEATURES_FOR_TESTS,
        )]
    }
}

/// Puts the programs, as [`program_builds`] or the build of the tests left them, into the layout.
pub(crate) fn install_programs(layout: &Layout, arguments: &Arguments) -> Result<()> {
    for program in OF_CLOUD.into_iter().chain(RESIDENT).chain(OF_AUTHORS) {
        let profile = if arguments.release && program == "fleet-cloud" {
            simulate::PROFILE
        } else {
            profile(arguments)
        };
        let built = cargo::target_folder()
            .join(folder_of(profile))
            .join(program);
        if arguments.release && RESIDENT.contains(&program) {
            refuse_what_is_for_tests(&built)?;
        }
        install(&built, &layout.folder.join("bin").join(program))?;
    }
    Ok(())
}

/// The compiler of plugins, the plugins and the policy.
fn build_around_programs(arguments: &Arguments, steps: &mut Steps) -> Result<Layout> {
    let folder = cargo::target_folder().join("dist");

    steps.begin("the compiler of plugins");
    let compiler_profile = compiler_profile(arguments);
    let mut compiler = cargo::cargo(["build", "--package", "supervisor-compile"]);
    compiler.args(["--profile", compiler_profile]);
    cargo::finish(compiler)?;

    steps.begin("the plugins");
    let plugins = crates_in("plugins")?;
    build_components(&plugins)?;

    steps.begin("the layout");
    let compiler = cargo::target_folder().join(folder_of(compiler_profile));
    install(
        &compiler.join("supervisor-compile"),
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
    build_small(packages, WASM_TARGET)
}

/// Builds packages for a target of their own, with the profile of components.
pub(crate) fn build_small(packages: &[String], target: &str) -> Result<()> {
    cargo::add_target(target)?;
    let mut command = cargo::cargo(["build", "--profile", "wasm", "--target", target]);
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
        let manifest = entry.path().join("Cargo.toml");
        // One with a workspace of its own is built by somebody else's tools.
        let is_ours = |text: String| !text.contains("\n[workspace]");
        if fs::read_to_string(manifest).is_ok_and(is_ours) {
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
    fn what_is_shipped_is_built_without_what_tests_alone_need() {
        let shipped = program_builds(&Arguments { release: true });
        for build in &shipped {
            let optimized = ["--release", "--profile"]
                .iter()
                .any(|it| build.contains(it));
            assert!(optimized && !build.contains(&"--features"), "{build:?}");
        }
        let tested = program_builds(&Arguments { release: false });
        assert!(tested[0].contains(&"supervisor/abort-at"), "{tested:?}");
    }

    #[test]
    fn a_program_that_a_test_can_kill_is_not_shipped() -> Result<()> {
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
