//! `cargo xtask fuzz`: feeds parsers, statements and endpoints with what nobody would send, for as long as one likes.
//! The same targets run among the tests, with a bounded number of inputs each.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::cargo;
use crate::private_postgres::PostgresForTests;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long each target goes on
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: u64,
    /// The targets to run; without any, all of them
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
}

/// A target: its name, the package, what of that package is tested, and the test.
struct Target(
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
);

const TARGETS: [Target; 7] = [
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
        "fuzz::whatever_stands_in_the_body_of_a_write_is_taken_or_refused",
    ),
    Target(
        "reports",
        "fleet-cloud",
        &["--test", "cloud"],
        "fuzz::whatever_a_device_reports_is_taken_or_refused",
    ),
    Target(
        "tunnel-device",
        "tunnel",
        &["--lib"],
        "fuzz_tests::a_device_survives_whatever_its_cloud_sends",
    ),
    Target(
        "tunnel-cloud",
        "tunnel",
        &["--lib"],
        "fuzz_tests::a_cloud_survives_whatever_a_device_sends",
    ),
    Target(
        "compose",
        "fleet",
        &["--bins"],
        "deploy::compose::fuzz_tests::whatever_stands_in_a_compose_file_is_read_or_refused",
    ),
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let is_wanted = |Target(name, ..): &&Target| {
        arguments.targets.is_empty() || arguments.targets.iter().any(|wanted| wanted == name)
    };
    let wanted: Vec<&Target> = TARGETS.iter().filter(is_wanted).collect();
    let names = || TARGETS.map(|Target(name, ..)| name).join(", ");
    if let Some(unknown) = arguments
        .targets
        .iter()
        .find(|it| !TARGETS.iter().any(|Target(name, ..)| name == it))
    {
        bail!("there is no target `{unknown}`; there are {}", names());
    }
    let postgres = PostgresForTests::find();
    for Target(name, package, of, test) in wanted {
        println!("{name}: for {} s", arguments.seconds);
        let begun = Instant::now();
        let mut command = cargo::cargo(["test", "--quiet", "--package", package]);
        command
            .args(*of)
            .args(["--", "--exact", test, "--nocapture"]);
        command.env("FUZZ_SECONDS", arguments.seconds.to_string());
        postgres.give_to(&mut command);
        cargo::finish(command)?;
        println!(
            "{name}: nothing was found ({} s with its build)",
            begun.elapsed().as_secs()
        );
    }
    postgres.account_for_skips()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_is_a_test_that_there_is() {
        for (file, package) in [
            ("cloud/data/tests/data/fuzz.rs", "data"),
            ("cloud/server/tests/cloud/fuzz.rs", "fleet-cloud"),
            ("cloud/tunnel/src/fuzz_tests.rs", "tunnel"),
            ("cloud/fleet/src/deploy/compose/fuzz_tests.rs", "fleet"),
        ] {
            let text = std::fs::read_to_string(cargo::repository().join(file)).expect(file);
            for Target(name, of, _, test) in &TARGETS {
                let (_, test) = test.rsplit_once("::").expect(test);
                let there =
                    text.contains(&format!("fn {test}()")) && text.contains(&format!("\"{name}\""));
                assert_eq!(there, *of == package, "{file}: {name}");
            }
        }
    }
}
