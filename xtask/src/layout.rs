//! The layout in `target/dist`: the programs, the plugins with the list of their files, and the default policy, each at
//! the path relative to the supervisor where it looks for it, and the list of their dependencies.
//!
//! The compiler is built by a separate cargo invocation: a single one would unify wasmtime's features and put the code
//! generator into the program that runs components. Outside of a release, each invocation selects all packages, with the
//! features of the tests, and names the programs that it builds: so a dependency has the same features in all of them,
//! and is built once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{self, Steps, WASM_TARGET};
use crate::crates::{component_file, crates_in, guest_crates, packages_of_this_machine};
use crate::{sbom, simulate, stock_plugins};

#[derive(clap::Args)]
pub(crate) struct BuildArguments {
    /// Optimize and strip the programs
    #[arg(long)]
    pub(crate) release: bool,
}

/// The path of a built layout.
pub(crate) struct Layout {
    pub(crate) folder: PathBuf,
}

impl Layout {
    pub(crate) fn supervisor(&self) -> PathBuf {
        self.folder.join("bin/supervisor")
    }
}

/// Returns the folder in which cargo puts components.
pub(crate) fn components_folder() -> PathBuf {
    cargo::target_folder().join(WASM_TARGET).join("wasm")
}

/// The programs that run permanently on a device, by their crates.
const RESIDENT: [&str; 2] = ["supervisor", "supervisor-wasm"];
/// The programs of the cloud, by their crates.
const OF_CLOUD: [&str; 2] = ["fleet", "fleet-cloud"];

/// The program of plugin authors, by its crate. It uses the compiler next to it.
const OF_AUTHORS: [&str; 1] = ["supervisor-plugin"];

/// Omits the compiler, which the tool of plugin authors contains if it is installed on its own: with it, cargo would
/// put a code generator into all programs that are built at the same time.
pub(crate) const WITHOUT_COMPILER: &str = "--no-default-features";
/// Features in tests: of the supervisor, which a test can make kill itself, and the benchmarks' own default features,
/// which are combined with those of all packages.
const FEATURES_FOR_TESTS: [&str; 3] = [
    WITHOUT_COMPILER,
    "--features",
    "supervisor/abort-at,bench/cloud,bench/device",
];
/// The program that contains the compiler.
const COMPILER: &str = "supervisor-compile";

/// The number of steps that [`build_in`] announces.
pub(crate) const STEPS: usize = 4;

pub(crate) fn build(arguments: &BuildArguments) -> Result<Layout> {
    build_in(arguments, &mut Steps::new(STEPS))
}

/// Finds the layout of an earlier build.
///
/// # Errors
/// If there is none, or it is incomplete.
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

/// Like [`build`], but without the programs, which come from the build of the tests ([`install_programs`]): a separate
/// build would compile nearly all of their dependencies a second time. Also builds the components that tests load.
pub(crate) fn build_for_tests() -> Result<Layout> {
    let components = ComponentsBuild::start(&[crates_in("plugins")?, guest_crates()?].concat())?;
    let mut steps = Steps::new(STEPS - 1);
    let arguments = BuildArguments { release: false };
    build_compiler(&arguments, &mut steps)?;
    install_around_programs(&arguments, components, &mut steps)
}

/// Like [`build`], as the first [`STEPS`] of more.
pub(crate) fn build_in(arguments: &BuildArguments, steps: &mut Steps) -> Result<Layout> {
    let components = ComponentsBuild::start(&crates_in("plugins")?)?;
    // First, since the code generator is one crate, which takes a minute: the components are built beside it.
    build_compiler(arguments, steps)?;
    steps.begin("the programs of devices and of the cloud");
    for program in program_builds(arguments)? {
        cargo::finish(cargo::cargo(&program))?;
    }
    let layout = install_around_programs(arguments, components, steps)?;
    install_programs(&layout, arguments)?;
    sbom::write(&layout.folder)?;
    Ok(layout)
}

/// Returns the profile of the programs, except for those of the cloud in a release.
fn profile(arguments: &BuildArguments) -> &'static str {
    if arguments.release { "release" } else { "dev" }
}

/// Returns the folder below the target folder in which cargo puts the output of a profile.
fn folder_of(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

/// The profile of the compiler in a release.
const COMPILER_PROFILE: &str = "compiler";

/// Returns the profile of the compiler. Outside of a release it is the profile of the other programs, which optimizes the
/// code generator.
fn compiler_profile(arguments: &BuildArguments) -> &'static str {
    if arguments.release {
        COMPILER_PROFILE
    } else {
        "dev"
    }
}

/// Returns the cargo arguments that build all programs except the compiler.
///
/// A release takes four builds: features of shared crates for the programs of the cloud and of authors must not reach
/// devices, and the cloud is built for speed rather than size.
fn program_builds(arguments: &BuildArguments) -> Result<Vec<Vec<String>>> {
    let release = |programs: &[&str], more: &[&str]| {
        let packages = programs.iter().flat_map(|program| ["--package", *program]);
        let words = ["build"].into_iter().chain(packages);
        words
            .chain(more.iter().copied())
            .map(str::to_owned)
            .collect()
    };
    Ok(if arguments.release {
        vec![
            release(&["fleet"], &["--release"]),
            release(&["fleet-cloud"], &["--profile", simulate::PROFILE]),
            release(&RESIDENT, &["--release"]),
            release(&OF_AUTHORS, &["--release", WITHOUT_COMPILER]),
        ]
    } else {
        let programs = [&OF_CLOUD[..], &RESIDENT, &OF_AUTHORS].concat();
        vec![build_like_tests(&programs, &packages_as_tested()?)]
    })
}

/// Returns the cargo arguments that build `programs` with the features that all of `packages` have together.
fn build_like_tests(programs: &[&str], packages: &[String]) -> Vec<String> {
    let programs = programs.iter().flat_map(|program| ["--bin", *program]);
    let words = ["build"].into_iter().chain(programs);
    let words = words.map(str::to_owned);
    words.chain(packages.iter().cloned()).collect()
}

/// Returns all packages with tests that run on this machine, as arguments of cargo, with their features.
pub(crate) fn packages_as_tested() -> Result<Vec<String>> {
    with_features_for_tests(&[COMPILER])
}

fn with_features_for_tests(omitted: &[&str]) -> Result<Vec<String>> {
    let mut arguments = packages_of_this_machine(omitted)?;
    arguments.extend(FEATURES_FOR_TESTS.map(str::to_owned));
    Ok(arguments)
}

/// Returns the cargo arguments that build the compiler of plugins.
fn compiler_build(arguments: &BuildArguments) -> Result<Vec<String>> {
    if arguments.release {
        let release = [
            "build",
            "--package",
            COMPILER,
            "--profile",
            COMPILER_PROFILE,
        ];
        return Ok(release.map(str::to_owned).to_vec());
    }
    Ok(build_like_tests(
        &[COMPILER],
        &with_features_for_tests(&[])?,
    ))
}

/// Puts the programs from [`program_builds`] or the build of the tests into the layout.
pub(crate) fn install_programs(layout: &Layout, arguments: &BuildArguments) -> Result<()> {
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

fn build_compiler(arguments: &BuildArguments, steps: &mut Steps) -> Result<()> {
    steps.begin("the compiler of plugins");
    cargo::finish(cargo::cargo(compiler_build(arguments)?))
}

/// Puts the compiler, the plugins from `components` and the policy into the layout.
fn install_around_programs(
    arguments: &BuildArguments,
    components: ComponentsBuild,
    steps: &mut Steps,
) -> Result<Layout> {
    steps.begin("the plugins");
    components.finish()?;
    let plugins = crates_in("plugins")?;

    steps.begin("the layout");
    let folder = cargo::target_folder().join("dist");
    let compiler = cargo::target_folder().join(folder_of(compiler_profile(arguments)));
    install(&compiler.join(COMPILER), &folder.join("bin").join(COMPILER))?;
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

/// The prefix of all variables with which a test makes a program do something that is not otherwise possible.
const FOR_TESTS: &str = "SUPERVISOR_TEST_";

/// Checks that a released program does not contain features that only tests may have.
///
/// # Errors
/// If it contains one.
fn refuse_what_is_for_tests(program: &Path) -> Result<()> {
    let bytes =
        fs::read(program).with_context(|| format!("failed to read `{}`", program.display()))?;
    let has_it = bytes
        .windows(FOR_TESTS.len())
        .any(|window| window == FOR_TESTS.as_bytes());
    if has_it {
        bail!(
            "`{}` reads a variable `{FOR_TESTS}…`, which is only for tests: build it without the feature that has it",
            program.display()
        );
    }
    Ok(())
}

/// A build of components that runs beside the build of the programs: they share no folder that cargo locks, and one
/// processor is idle while the other compiles the code generator.
struct ComponentsBuild(Child);

impl ComponentsBuild {
    fn start(packages: &[String]) -> Result<Self> {
        // Not beside cargo, which uses the toolchain that this changes.
        cargo::add_target(WASM_TARGET)?;
        let mut command = small_build(packages, WASM_TARGET);
        command
            .stdin(Stdio::null())
            // Two progress bars would overwrite each other.
            .env("CARGO_TERM_PROGRESS_WHEN", "never");
        let cargo = command.spawn().context("failed to start cargo")?;
        Ok(ComponentsBuild(cargo))
    }

    fn finish(mut self) -> Result<()> {
        let status = self.0.wait().context("failed to wait for cargo")?;
        if !status.success() {
            bail!("building the components failed ({status})");
        }
        Ok(())
    }
}

impl Drop for ComponentsBuild {
    /// Stops the build if another one has failed. After [`ComponentsBuild::finish`] there is nothing to stop.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Builds crates as components, with the profile and target of releases.
pub(crate) fn build_components(packages: &[String]) -> Result<()> {
    build_small(packages, WASM_TARGET)
}

/// Builds packages for a specific target, with the profile of components.
pub(crate) fn build_small(packages: &[String], target: &str) -> Result<()> {
    cargo::add_target(target)?;
    cargo::finish(small_build(packages, target))
}

fn small_build(packages: &[String], target: &str) -> Command {
    let mut command = cargo::cargo(["build", "--profile", "wasm", "--target", target]);
    for package in packages {
        command.args(["--package", package]);
    }
    command
}

/// Copies into the same folder and renames, so that a program that runs from there is not disturbed.
pub(crate) fn install(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("failed to create `{}`", parent.display()))?;
    }
    // Another xtask may be doing the same.
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

/// Removes plugins from the layout that the repository no longer has.
fn remove_strangers(folder: &Path, plugins: &[String]) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Files that another process is about to rename are not plugins yet.
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
    fn shipped_programs_are_built_without_the_parts_for_tests() -> Result<()> {
        let all = |release| -> Result<Vec<String>> {
            let arguments = BuildArguments { release };
            let builds = program_builds(&arguments)?.into_iter();
            let builds = builds.chain([compiler_build(&arguments)?]);
            Ok(builds.map(|words| words.join(" ")).collect())
        };
        for build in all(true)? {
            let is_optimized = build.contains("--release") || build.contains("--profile ");
            let is_of_its_own = !build.contains("--workspace") && !build.contains("--features");
            assert!(is_optimized && is_of_its_own, "{build}");
        }
        for build in all(false)? {
            assert!(build.contains("--workspace"), "{build}");
            assert!(build.contains("--features supervisor/abort-at"), "{build}");
        }
        Ok(())
    }

    #[test]
    fn a_program_that_a_test_can_kill_is_not_shipped() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("supervisor");
        fs::write(&program, b"\x7fELF..SUPERVISOR_MODE..")?;
        refuse_what_is_for_tests(&program)?;
        fs::write(&program, b"\x7fELF..SUPERVISOR_TEST_ABORT_AT..")?;
        let refused = refuse_what_is_for_tests(&program);
        assert!(refused.is_err_and(|error| error.to_string().contains("only for tests")));
        Ok(())
    }
}
