//! The result of `cargo xtask build`: a host without a code generator, and a layout that can be copied.

use std::process::Command;

use tests::{Supervisor, distribution, repository};

/// Returns the crates that a program is built from, one per line.
fn tree(package: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .current_dir(repository())
        .args(["tree", "--offline", "--edges", "normal"])
        .args(["--package", package])
        .args(["--prefix", "none", "--format", "{p} {f}"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the names of the crates in [`tree`].
fn crates(package: &str) -> Vec<String> {
    let tree = tree(package);
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

fn find_family<'a>(crates: &'a [String], families: &[&str]) -> Vec<&'a String> {
    let is_one = |name: &&String| families.iter().any(|family| name.starts_with(family));
    crates.iter().filter(is_one).collect()
}

#[test]
fn the_program_that_runs_components_has_no_code_generator() {
    let crates = crates("supervisor-wasm");
    assert!(crates.iter().any(|name| name == "wasmtime"), "{crates:?}");
    let generators = find_family(&crates, &["cranelift-codegen", "winch-codegen"]);
    assert_eq!(generators, Vec::<&String>::new());
}

#[test]
fn the_supervisor_is_built_without_what_runs_components() {
    let crates = crates("supervisor");
    assert!(crates.iter().any(|name| name == "plugins"), "{crates:?}");
    let of_wasm = find_family(
        &crates,
        &[
            "wasmtime",
            "cranelift",
            "winch",
            "pulley",
            "sandbox",
            "wasm-runner",
        ],
    );
    assert_eq!(of_wasm, Vec::<&String>::new());
}

#[test]
fn a_services_process_holds_nothing_of_the_supervisor() {
    let crates = crates("supervisor-wasm");
    assert!(
        crates.iter().any(|name| name == "wasm-runner"),
        "{crates:?}"
    );
    for foreign in [
        "api",
        "cloud-link",
        "engine",
        // Not `hyper`, which has the types of wasi:http; nothing here serves or connects with it.
        "hyper-util",
        "os",
        "plugins",
        "reconcile",
        "rusqlite",
        "rustls",
        "store",
        "zbus",
    ] {
        let is_in_it = crates.iter().any(|name| name == foreign);
        assert!(!is_in_it, "`{foreign}` is in it");
    }
}

#[test]
fn shipped_programs_are_built_without_the_parts_for_tests() {
    for program in ["supervisor", "supervisor-wasm"] {
        let tree = tree(program);
        let for_tests: Vec<&str> = tree
            .lines()
            .filter(|line| line.contains("abort-at") || line.contains("moments"))
            .collect();
        assert_eq!(for_tests, Vec::<&str>::new(), "{program}");
    }
}

#[test]
fn the_layout_of_tests_alone_has_what_kills_the_supervisor() {
    let program = std::fs::read(distribution().join("bin/supervisor")).unwrap();
    let variable = b"SUPERVISOR_TEST_ABORT_AT";
    let mut windows = program.windows(variable.len());
    assert!(
        windows.any(|window| window == variable),
        "what `cargo xtask build --release` looks for is not how it is found"
    );
}

#[tokio::test]
async fn the_layout_runs_from_wherever_it_is_copied_to() {
    let elsewhere = tempfile::tempdir().unwrap();
    let copied = Command::new("cp")
        .arg("--recursive")
        .arg(distribution())
        .arg(elsewhere.path().join("copy"))
        .status()
        .unwrap();
    assert!(copied.success());
    let device = Supervisor::on_wasm()
        .program(elsewhere.path().join("copy/bin/supervisor"))
        .start()
        .await;
    let answer = device.get("/v2/device/name").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let plugins = device.json("/v3/plugins").await;
    assert!(plugins.to_string().contains("led-blink"), "{plugins}");
}
