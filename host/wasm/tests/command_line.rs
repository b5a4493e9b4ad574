//! The program's command line. (`cargo xtask test` also needs this file so that cargo builds the program with the
//! tests; from there it goes into the layout that the black-box suites run.)

use std::process::Command;

#[test]
fn a_service_without_a_record_is_refused_with_the_argument_that_is_missing() {
    let refused = Command::new(env!("CARGO_BIN_EXE_supervisor-wasm"))
        .arg("wasm-service")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("--record"), "{message}");
}
