//! The example requests of real clients (docs/spec/cloud.md#odata-examples), with their answers.

use std::collections::BTreeSet;

use expect_test::{ExpectFile, expect_file};

use crate::harness::on_both;
use crate::transcript::picture;

/// Checks that the requests of a file are answered as stated in it.
async fn check(file: ExpectFile) {
    let text = file.data();
    on_both(async |cloud| file.assert_eq(&picture(&cloud, &text).await)).await;
}

#[tokio::test]
async fn fleets() {
    check(expect_file!["examples/fleets.txt"]).await;
}

#[tokio::test]
async fn devices_are_read() {
    check(expect_file!["examples/devices_read.txt"]).await;
}

#[tokio::test]
async fn devices_are_written() {
    check(expect_file!["examples/devices_written.txt"]).await;
}

#[tokio::test]
async fn tags() {
    check(expect_file!["examples/tags.txt"]).await;
}

#[tokio::test]
async fn variables_and_services() {
    check(expect_file!["examples/variables.txt"]).await;
}

#[tokio::test]
async fn releases() {
    check(expect_file!["examples/releases.txt"]).await;
}

#[tokio::test]
async fn catalogue_organizations_and_keys() {
    check(expect_file!["examples/catalogue.txt"]).await;
}

#[tokio::test]
async fn counts_aliases_navigation_rights_and_history() {
    check(expect_file!["examples/more.txt"]).await;
}

#[tokio::test]
async fn bytes_on_the_wire() {
    check(expect_file!["examples/bytes.txt"]).await;
}

/// The tables of the description: addressing, query options, operations of fleets, tracking.
#[tokio::test]
async fn operations() {
    check(expect_file!["examples/operations.txt"]).await;
}

/// The most likely mistakes (docs/spec/cloud.md#pitfalls), as far as they concern the data API.
#[tokio::test]
async fn likely_mistakes() {
    check(expect_file!["examples/mistakes.txt"]).await;
}

#[test]
fn every_example_is_in_one_of_the_files() {
    let files = [
        expect_file!["examples/fleets.txt"],
        expect_file!["examples/devices_read.txt"],
        expect_file!["examples/devices_written.txt"],
        expect_file!["examples/tags.txt"],
        expect_file!["examples/variables.txt"],
        expect_file!["examples/releases.txt"],
        expect_file!["examples/catalogue.txt"],
        expect_file!["examples/more.txt"],
        expect_file!["examples/bytes.txt"],
    ];
    let mut there = BTreeSet::new();
    for file in files {
        let text = file.data();
        for line in text.lines().filter_map(|line| line.strip_prefix("# ")) {
            let marks = line.split([' ', ',']).filter(|word| !word.is_empty());
            let is_mark = |word: &&str| word.trim_start_matches('K').parse::<u32>().is_ok();
            there.extend(marks.take_while(is_mark).map(str::to_owned));
        }
    }
    let keys = (1..=100).map(|n| n.to_string());
    let keys: BTreeSet<String> = keys.chain((1..=5).map(|n| format!("K{n}"))).collect();
    assert_eq!(there, keys);
}
