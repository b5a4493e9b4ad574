//! Every resource with all its fields, and everything that can be expanded from it.

use data::SystemPurpose;
use data::query::Caller;
use data::testing::{on_both, on_both_at};
use resources::{Version, v7};

use super::{ann, get, get_as, variants};
use crate::fixture;

#[tokio::test]
async fn every_resource_is_read_with_all_its_fields_and_every_link_expanded_in_one_statement() {
    on_both(async |database| {
        fixture::cloud(&database).await;
        let older = [Version::V5, Version::V6].map(Version::model);
        let models = [v7()].into_iter().chain(older);
        for (model, resource) in models.flat_map(|model| {
            let resources = model.resources().iter();
            resources.map(move |resource| (model, resource))
        }) {
            let links: Vec<_> = resource.navigations.iter().map(|one| one.name).collect();
            let expand = if links.is_empty() {
                String::new()
            } else {
                format!("?$expand={}", links.join(","))
            };
            let url = format!("/{}{expand}", resource.name);
            let rows = get_as(
                model,
                &database,
                &Caller::Platform(SystemPurpose::Rules),
                &url,
            )
            .await
            .expect(&url);
            let rows = rows.as_array().expect(&url);
            for row in rows {
                for field in resource.fields.iter().filter(|field| !field.secret) {
                    assert!(row.get(field.name).is_some(), "{url}: {}", field.name);
                }
                for field in resource.fields.iter().filter(|field| field.secret) {
                    assert!(row.get(field.name).is_none(), "{url}: {}", field.name);
                }
                for link in &links {
                    assert!(row[link].is_array(), "{url}: {link}: {}", row[link]);
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn every_example_request_is_answered_alike_by_both_databases() {
    let requests = include_str!("../../../../odata/tests/requests.txt");
    let answers = std::sync::Mutex::new(Vec::new());
    on_both_at(async |at, database| {
        fixture::cloud(&database).await;
        let mut all = Vec::new();
        let mut strange = Vec::new();
        let requests = requests.lines().filter(|line| line.starts_with('/'));
        // An action is not a record: only the server knows it.
        let requests: Vec<&str> = requests
            .filter(|url| !url.ends_with("/canAccess"))
            .collect();
        variants::agree(&at, &ann(), &requests).await;
        for url in requests {
            let answer = get(&database, &ann(), url).await;
            if let Err(error) = &answer {
                strange.push(format!("{url}: {error}"));
            }
            all.push((url, answer));
        }
        assert!(strange.is_empty(), "{}", strange.join("\n"));
        answers.lock().expect("the answers").push(all);
    })
    .await;
    let answers = answers.into_inner().expect("the answers");
    if let [one, other] = answers.as_slice() {
        assert_eq!(one, other);
    }
}
