//! A filter, an expansion or a count reveals nothing that a plain read would not show.

use std::collections::BTreeSet;

use data::Database;
use data::query::{Caller, QueryError};
use data::testing::on_both;
use resources::{Role, v7};
use serde_json::Value;

use super::{ann, bob, get};
use crate::fixture;

/// Returns a row's id, or all of its content if it has none.
fn named(row: &Value) -> String {
    match row.get("id") {
        Some(Value::Number(id)) => id.to_string(),
        _ => row.to_string(),
    }
}

async fn plainly_read(
    database: &Database,
    caller: &Caller,
    resource: &str,
) -> Option<BTreeSet<String>> {
    match get(database, caller, &format!("/{resource}")).await {
        Ok(rows) => Some(rows.as_array().expect("rows").iter().map(named).collect()),
        Err(QueryError::NoRights(_)) => None,
        Err(error) => panic!("{resource}: {error}"),
    }
}

fn callers() -> Vec<(&'static str, Caller)> {
    let holder = |role, actor| Caller::Holder {
        role,
        actor: Some(actor),
        user: None,
    };
    vec![
        ("ann", ann()),
        ("bob", bob()),
        ("guest", Caller::guest()),
        ("device 7", holder(Role::DeviceKey, 37)),
        ("fleet 4", holder(Role::ProvisioningKey, 24)),
    ]
}

#[tokio::test]
async fn for_every_pair_of_linked_resources_a_link_shows_no_more_than_a_plain_read() {
    on_both(async |database| {
        fixture::cloud(&database).await;
        let mut pairs = 0;
        for (who, caller) in callers() {
            for resource in v7().resources() {
                let Some(visible) = plainly_read(&database, &caller, resource.name).await else {
                    continue;
                };
                for link in &resource.navigations {
                    let at = format!("{who}: {} -> {}", resource.name, link.name);
                    let beyond = plainly_read(&database, &caller, link.to).await;
                    let from = resource.name;
                    let name = link.name;
                    let urls = [
                        format!("/{from}?$expand={name}"),
                        format!("/{from}?$expand={name}/$count"),
                        format!("/{from}?$filter={name}/any(x:true)"),
                        format!("/{from}?$filter=not({name}/all(x:false))"),
                        format!("/{from}?$filter={name}/$count gt 0"),
                    ];
                    let mut found: Vec<BTreeSet<String>> = Vec::new();
                    let mut expanded = BTreeSet::new();
                    for (number, url) in urls.iter().enumerate() {
                        let answer = get(&database, &caller, url).await;
                        let Some(beyond) = &beyond else {
                            assert!(
                                matches!(answer, Err(QueryError::NoRights(_))),
                                "{at}: {answer:?}"
                            );
                            continue;
                        };
                        let rows = answer.expect(url);
                        let rows = rows.as_array().expect(url);
                        let shown: BTreeSet<String> = rows
                            .iter()
                            .filter(|row| match number {
                                0 => !row[name].as_array().expect("an array").is_empty(),
                                1 => row[name].as_i64().expect("a number") > 0,
                                _ => true,
                            })
                            .map(|row| match row.get("id") {
                                Some(Value::Number(_)) => named(row),
                                // A row without an id is compared without its expanded link.
                                _ => {
                                    let mut row = row.clone();
                                    row.as_object_mut().expect("an object").remove(name);
                                    row.to_string()
                                }
                            })
                            .collect();
                        if resource.find_field("id").is_some_and(|id| !id.nullable) {
                            assert!(shown.is_subset(&visible), "{at}: {url}");
                            found.push(shown);
                        }
                        if number == 0 {
                            for row in rows {
                                let behind = row[name].as_array().expect("an array");
                                expanded.extend(behind.iter().map(named));
                            }
                            assert!(
                                expanded.is_subset(beyond),
                                "{at}: {expanded:?} beyond {beyond:?}"
                            );
                        }
                    }
                    assert!(
                        found.windows(2).all(|two| two[0] == two[1]),
                        "{at}: {found:?}"
                    );
                    pairs += 1;
                }
            }
        }
        assert!(pairs > 200, "{pairs} pairs");
    })
    .await;
}
