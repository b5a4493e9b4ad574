//! What `cargo xtask build` leaves: a host without a code generator, and a layout that can be copied.

use std::process::Command;

use tests::{Supervisor, distribution, repository};

#[test]
fn the_supervisor_is_built_without_a_code_generator() {
    let output = Command::new(env!("CARGO"))
        .current_dir(repository())
        .args([
            "tree",
            "--offline",
            "--package",
            "supervisor",
            "--edges",
            "normal",
        ])
        .args(["--prefix", "none", "--format", "{p} {f}"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(
        tree.contains("wasmtime v"),
        "the supervisor runs components:\n{tree}"
    );
    let generators: Vec<&str> = tree
        .lines()
        .filter(|line| line.contains("cranelift-codegen") || line.contains("winch-codegen"))
        .collect();
    assert_eq!(generators, Vec::<&str>::new());
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
