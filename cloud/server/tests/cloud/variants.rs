//! The example requests with values of other types in place of their constants, in random order over one connection to
//! the database: each is answered as if it were the only one.

use std::collections::BTreeSet;

use data::testing::on_fresh;
use fuzz::variants::with_variants;
use reqwest::{Method, StatusCode};

use crate::harness::Cloud;
use crate::scene::{Names, scene};
use crate::transcript::reads;

const EXAMPLES: [&str; 10] = [
    include_str!("examples/fleets.txt"),
    include_str!("examples/devices_read.txt"),
    include_str!("examples/devices_written.txt"),
    include_str!("examples/tags.txt"),
    include_str!("examples/variables.txt"),
    include_str!("examples/releases.txt"),
    include_str!("examples/catalogue.txt"),
    include_str!("examples/more.txt"),
    include_str!("examples/operations.txt"),
    include_str!("examples/mistakes.txt"),
];
/// Maximum number of variants of one request, chosen at random.
const OF_ONE: usize = 6;
/// One connection for all requests with a credential, and no rate limit.
const ONE_CONNECTION: &str =
    "[limits]\nrequests_per_minute = 1000000000\n[pools]\npeople = 1\nguests = 1\n";

async fn answer(cloud: &Cloud, names: &Names, who: &str, url: &str) -> (StatusCode, String) {
    let request = match who {
        "nobody" => cloud.ask(Method::GET, url),
        who => names.by(cloud, who).ask(Method::GET, url),
    };
    let answer = request.send().await.expect("an answer");
    let status = answer.status();
    (status, answer.text().await.expect("an answer"))
}

#[tokio::test]
async fn examples_and_their_variants_answer_over_one_connection_as_they_do_alone() {
    on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let names = scene(&cloud).await;
        cloud.end().await;
        let keeping = Cloud::start_with(&url, ONE_CONNECTION).await;
        let forgetting = format!("{ONE_CONNECTION}prepared_statements = 0");
        let forgetting = Cloud::start_with(&url, &forgetting).await;
        // Rows that only other requests create get no number.
        let requests: BTreeSet<String> = EXAMPLES
            .iter()
            .flat_map(|text| reads(text))
            .map(|(who, url)| format!("{who} {}", names.filled(&url)))
            .filter(|request| !request.contains('<'))
            .collect();
        let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
        let variants = with_variants(&requests, OF_ONE);
        let (mut answered, mut refused) = (0, 0);
        // Twice: the second time, everything that came earlier is there for all of them.
        for variant in variants.iter().chain(&variants) {
            let (who, url) = variant.split_once(' ').expect("a caller and an address");
            let alone = answer(&forgetting, &names, who, url).await;
            let together = answer(&keeping, &names, who, url).await;
            assert_eq!(together, alone, "{variant}");
            assert!(!alone.0.is_server_error(), "{variant}: {alone:?}");
            if alone.0.is_success() {
                answered += 1
            } else {
                refused += 1
            }
        }
        assert!(
            answered > 500 && answered > refused,
            "{answered} of {refused}"
        );
    })
    .await;
}
