//! `cargo xtask fuzz`: feeds parsers, statements and endpoints with input that nobody would send, for any length of
//! time. The same targets run among the tests, with a limited number of inputs each.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::cargo;
use crate::crates::guest_crates;
use crate::for_tests;
use crate::layout::{self, build_components, components_folder};

#[derive(clap::Args)]
pub(crate) struct FuzzArguments {
    /// Seconds to run each target
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: u64,
    /// The targets to run; all of them by default
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
}

/// A target: its name, the package, the part of the package that is tested, and the test.
struct Target(
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
);

const TARGETS: [Target; 16] = [
    Target(
        "odata-grammar",
        "data",
        &["--test", "data"],
        "fuzz::requests_made_by_the_grammar_are_answered_alike",
    ),
    Target(
        "odata-text",
        "data",
        &["--test", "data"],
        "fuzz::requests_with_a_few_changes_are_answered_or_refused_alike",
    ),
    Target(
        "bodies",
        "fleet-cloud",
        &["--test", "cloud"],
        "fuzz::any_body_of_a_write_is_accepted_or_refused",
    ),
    Target(
        "reports",
        "fleet-cloud",
        &["--test", "cloud"],
        "fuzz::any_report_of_a_device_is_accepted_or_refused",
    ),
    Target(
        "tunnel-device",
        "tunnel",
        &["--lib"],
        "fuzz_tests::a_device_survives_any_message_of_its_cloud",
    ),
    Target(
        "tunnel-cloud",
        "tunnel",
        &["--lib"],
        "fuzz_tests::a_cloud_survives_any_message_of_a_device",
    ),
    Target(
        "compose",
        "fleet",
        &["--bins"],
        "deploy::compose::fuzz_tests::any_compose_file_is_read_or_refused",
    ),
    Target(
        "cloud-targets",
        "plan",
        &["--test", "plan"],
        "fuzz::any_target_of_a_cloud_is_refused_or_planned",
    ),
    Target(
        "local-targets",
        "plan",
        &["--test", "plan"],
        "fuzz::any_local_target_is_refused_or_planned_and_shown_as_it_was_given",
    ),
    Target(
        "cloud-answers",
        "cloud-link",
        &["--lib"],
        "client::fuzz_tests::any_answer_of_a_cloud_is_read_or_refused",
    ),
    Target(
        "manifests",
        "plugin-manifest",
        &["--lib"],
        "manifest::fuzz_tests::any_manifest_is_refused_or_within_bounds",
    ),
    Target(
        "policies",
        "plugins",
        &["--lib"],
        "policy::fuzz_tests::no_policy_grants_anything_to_a_file_that_it_does_not_pin",
    ),
    Target(
        "config-txt",
        "boot-config-txt",
        &["--lib"],
        "config_txt::fuzz_tests::any_config_txt_gets_the_settings_and_can_be_restored",
    ),
    Target(
        "redsocks-conf",
        "proxy-redirector",
        &["--lib"],
        "conf::fuzz_tests::any_redsocks_conf_is_read_and_written_back_unchanged",
    ),
    Target(
        "journal-options",
        "journal-logs",
        &["--lib"],
        "options::fuzz_tests::any_journal_query_is_refused_or_within_bounds",
    ),
    Target(
        "device-http",
        "tests",
        &["--test", "api"],
        "fuzz::any_bytes_sent_to_the_api_are_answered_or_refused",
    ),
];

/// The package whose targets run a built device.
const BLACK_BOX: &str = "tests";

pub(crate) fn run(arguments: &FuzzArguments) -> Result<()> {
    let is_selected = |Target(name, ..): &&Target| {
        arguments.targets.is_empty() || arguments.targets.iter().any(|target| target == name)
    };
    let targets: Vec<&Target> = TARGETS.iter().filter(is_selected).collect();
    let names = || TARGETS.map(|Target(name, ..)| name).join(", ");
    if let Some(unknown) = arguments
        .targets
        .iter()
        .find(|it| !TARGETS.iter().any(|Target(name, ..)| name == it))
    {
        bail!("there is no target `{unknown}`; there are {}", names());
    }
    let postgres = for_tests::postgres();
    let needs_device = |Target(_, package, ..): &&&Target| *package == BLACK_BOX;
    let layout = match targets.iter().find(needs_device) {
        Some(_) => {
            build_components(&guest_crates()?)?;
            Some(layout::build(&layout::BuildArguments { release: false })?)
        }
        None => None,
    };
    for Target(name, package, of, test) in targets {
        println!("{name}: for {} s", arguments.seconds);
        let begun = Instant::now();
        let mut command = cargo::cargo(["test", "--quiet", "--package", package]);
        command
            .args(*of)
            .args(["--", "--exact", test, "--nocapture"]);
        command.env("FUZZ_SECONDS", arguments.seconds.to_string());
        postgres.give_to(&mut command);
        if let Some(layout) = &layout {
            command.env("SUPERVISOR_DIST", &layout.folder);
            command.env("SUPERVISOR_TEST_GUESTS", components_folder());
        }
        cargo::finish(command)?;
        println!(
            "{name}: nothing was found ({} s with its build)",
            begun.elapsed().as_secs()
        );
    }
    match postgres.skipped {
        Some(skipped) => skipped.account_for(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that contain targets, and their packages.
    const FILES: [(&str, &str); 12] = [
        ("cloud/data/tests/data/fuzz.rs", "data"),
        ("cloud/server/tests/cloud/fuzz.rs", "fleet-cloud"),
        ("cloud/tunnel/src/fuzz_tests.rs", "tunnel"),
        ("cloud/fleet/src/deploy/compose/fuzz_tests.rs", "fleet"),
        ("host/plan/tests/plan/fuzz.rs", "plan"),
        ("host/cloud-link/src/client/fuzz_tests.rs", "cloud-link"),
        ("sdk/manifest/src/manifest/fuzz_tests.rs", "plugin-manifest"),
        ("host/plugins/src/policy/fuzz_tests.rs", "plugins"),
        (
            "plugins/boot-config-txt/src/config_txt/fuzz_tests.rs",
            "boot-config-txt",
        ),
        (
            "plugins/proxy-redirector/src/conf/fuzz_tests.rs",
            "proxy-redirector",
        ),
        (
            "plugins/journal-logs/src/options/fuzz_tests.rs",
            "journal-logs",
        ),
        ("tests/tests/api/fuzz.rs", "tests"),
    ];

    #[test]
    fn each_target_is_a_test_that_there_is() {
        let files = FILES.map(|(file, package)| {
            let path = cargo::repository().join(file);
            (std::fs::read_to_string(path).expect(file), package)
        });
        for Target(name, package, _, test) in &TARGETS {
            let (_, test) = test.rsplit_once("::").expect(test);
            let (test, name) = (format!("fn {test}()"), format!("\"{name}\""));
            let packages: Vec<&str> = files
                .iter()
                .filter(|(text, _)| text.contains(&test) && text.contains(&name))
                .map(|(_, package)| *package)
                .collect();
            assert_eq!(packages, [*package], "{name}");
        }
    }
}
