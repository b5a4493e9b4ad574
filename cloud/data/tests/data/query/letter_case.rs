//! Upper and lower case, of letters of all languages.

use data::Database;
use data::testing::{on_both, sql};
use serde_json::json;

use super::{ann, get};
use crate::fixture;

#[tokio::test]
async fn letters_beyond_ascii_have_a_case_on_both_databases() {
    on_both(async |database| {
        fixture::cloud(&database).await;
        let name = sql("UPDATE device SET device_name = ? WHERE id = 7");
        let name = name.with("École Süd Жук ΣΊΣ Straße");
        database.execute(&name).await.expect("a name");
        for (filter, found) in [
            ("tolower(device_name) eq 'école süd жук σίσ straße'", true),
            ("toupper(device_name) eq 'ÉCOLE SÜD ЖУК ΣΊΣ STRAßE'", true),
            ("contains(tolower(device_name),tolower('ÉCOLE'))", true),
            ("startswith(tolower(device_name),'éc')", true),
            ("tolower(concat('É',note)) eq null", true),
            (
                "tolower(toupper(tolower(device_name))) eq tolower(device_name)",
                true,
            ),
            // Compared by bytes, like all texts: `é` comes after `z`.
            ("tolower(device_name) gt 'z'", true),
            // No other comparison ignores case.
            ("contains(device_name,'école')", false),
            ("startswith(device_name,'éc')", false),
            ("substringof('жук',device_name)", false),
        ] {
            let url = format!("/device?$select=id&$filter=id eq 7 and {filter}");
            let url = url.replace(' ', "%20");
            let expected = if found {
                json!([{ "id": 7 }])
            } else {
                json!([])
            };
            let answer = get(&database, &ann(), &url).await;
            assert_eq!(answer, Ok(expected), "{filter}");
        }
    })
    .await;
}

/// Returns the result of a function for a text.
async fn made(database: &Database, function: &'static str, text: &str) -> String {
    let made = database.texts(&sql(function).with(text)).await;
    made.expect("an answer").remove(0).expect("a text")
}

#[tokio::test]
async fn every_character_has_the_same_case_on_both_databases() {
    // Beyond these, no letters have a case.
    let all: String = ('\u{1}'..'\u{1f000}').collect();
    let answers = std::sync::Mutex::new(Vec::new());
    on_both(async |database| {
        let lower = made(&database, "SELECT platform_lower(?)", &all).await;
        let upper = made(&database, "SELECT platform_upper(?)", &all).await;
        answers.lock().expect("the answers").push((lower, upper));
    })
    .await;
    let answers = answers.into_inner().expect("the answers");
    for (lower, upper) in &answers {
        let differ: Vec<char> = all
            .chars()
            .zip(lower.chars().zip(upper.chars()))
            .zip(answers[0].0.chars().zip(answers[0].1.chars()))
            .filter(|((_, here), there)| here != there)
            .map(|((character, _), _)| character)
            .collect();
        assert_eq!(differ, [], "they differ");
        let length = all.chars().count();
        assert_eq!(
            (lower.chars().count(), upper.chars().count()),
            (length, length)
        );
    }
}
