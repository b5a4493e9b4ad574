use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Low,
    High,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Id(u32);

#[derive(Debug, PartialEq, Deserialize)]
struct AllFields {
    name: String,
    count: u8,
    #[serde(default)]
    loud: bool,
    level: Option<Level>,
    #[serde(default)]
    tag: Vec<String>,
    ratio: Option<f64>,
    id: Option<Id>,
}

fn pairs(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

fn everything(text: &str) -> Result<AllFields, String> {
    read("query parameter", pairs(text)).map_err(|error| error.message().to_owned())
}

#[test]
fn each_value_is_read_as_its_fields_type() {
    let found =
        everything("name=Ada+L%C3%A9&count=3&loud=true&level=high&tag=a&tag=b&ratio=.5&id=7&x=y");
    let expected = AllFields {
        name: "Ada L\u{e9}".to_owned(),
        count: 3,
        loud: true,
        level: Some(Level::High),
        tag: vec!["a".to_owned(), "b".to_owned()],
        ratio: Some(0.5),
        id: Some(Id(7)),
    };
    assert_eq!(found, Ok(expected));
}

#[test]
fn invalid_values_are_reported_with_the_parameters_name() {
    let table = [
        ("count=3", "query parameter `name` is missing"),
        ("name=a", "query parameter `count` is missing"),
        (
            "name=a&count=300",
            "query parameter `count` must be a whole number from 0 to 255, not `300`",
        ),
        (
            "name=a&count=",
            "query parameter `count` must be a whole number from 0 to 255, not ``",
        ),
        (
            "name=a&count=3&loud=yes",
            "query parameter `loud` must be `true` or `false`, not `yes`",
        ),
        (
            "name=a&count=3&level=mid",
            "query parameter `level` must be one of `low`, `high`, not `mid`",
        ),
        (
            "name=a&name=b&count=3",
            "query parameter `name` is given more than once",
        ),
        (
            "name=a&count=3&ratio=NaN",
            "query parameter `ratio` must be a number, not `NaN`",
        ),
        (
            "name=a&count=3&id=-1",
            "query parameter `id` must be a whole number from 0 to 4294967295, not `-1`",
        ),
    ];
    for (query, message) in table {
        assert_eq!(everything(query), Err(message.to_owned()), "{query}");
    }
}

/// Texts for numbers, which the tests of the SDKs for all languages read.
#[derive(Deserialize)]
struct NumberTexts<T> {
    accepted: Vec<(String, T)>,
    refused: Vec<String>,
}

#[derive(Deserialize)]
struct NumberTable {
    whole: NumberTexts<i64>,
    decimal: NumberTexts<f64>,
}

fn number<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let pairs = vec![("n".to_owned(), text.to_owned())];
    read("query parameter", pairs).map_err(|error| error.message().to_owned())
}

#[test]
fn numbers_have_the_form_that_they_have_in_every_language() {
    let table: NumberTable =
        serde_json::from_str(include_str!("../../tests/numbers.json")).unwrap();
    for (text, expected) in table.whole.accepted {
        assert_eq!(number::<i64>(&text), Ok(expected), "{text:?}");
    }
    for text in table.whole.refused {
        assert!(number::<i64>(&text).is_err(), "{text:?}");
        assert!(number::<u32>(&text).is_err(), "{text:?}");
    }
    for (text, expected) in table.decimal.accepted {
        assert_eq!(number::<f64>(&text), Ok(expected), "{text:?}");
        assert!(number::<f32>(&text).is_ok(), "{text:?}");
    }
    for text in table.decimal.refused {
        assert!(number::<f64>(&text).is_err(), "{text:?}");
        assert!(number::<f32>(&text).is_err(), "{text:?}");
    }
    // Types without negative numbers take no minus sign.
    assert!(number::<u32>("-0").is_err());
    assert_eq!(number::<f64>("1e39"), Ok(1e39));
    assert_eq!(
        number::<f32>("1e39"),
        Err("query parameter `n` must be a number from -3.4e38 to 3.4e38, not `1e39`".to_owned())
    );
}

#[test]
fn a_refused_value_is_shown_shortened() {
    let long = "9".repeat(10_000);
    let message = everything(&format!("name=a&count={long}")).unwrap_err();
    assert!(message.len() < 200, "{message}");
}

#[test]
fn one_parameter_reads_as_a_plain_value_and_several_as_a_tuple() {
    let one = || pairs("id=7");
    let two = || pairs("id=7&name=web");
    assert_eq!(read::<u64>("path parameter", one()), Ok(7));
    assert_eq!(read::<Id>("path parameter", one()), Ok(Id(7)));
    assert_eq!(read::<String>("path parameter", one()), Ok("7".to_owned()));
    assert_eq!(
        read::<(Id, String)>("path parameter", two()),
        Ok((Id(7), "web".to_owned()))
    );
    assert_eq!(
        read::<Vec<String>>("path parameter", two()),
        Ok(vec!["7".to_owned(), "web".to_owned()])
    );
    assert_eq!(
        read::<BTreeMap<String, String>>("path parameter", one()),
        Ok(BTreeMap::from([("id".to_owned(), "7".to_owned())]))
    );
    let error = read::<u64>("path parameter", pairs("id=x")).unwrap_err();
    assert!(error.message().starts_with("path parameter `id` must be"));
    assert!(read::<u64>("path parameter", two()).is_err());
    assert!(read::<(u64,)>("path parameter", two()).is_err());
}

#[test]
fn names_that_do_not_fit_are_the_authors_mistake_and_values_are_the_callers() {
    #[derive(Debug, Deserialize)]
    struct OtherField {
        #[expect(dead_code, reason = "it cannot be read")]
        other: String,
    }
    fn status<T: DeserializeOwned + fmt::Debug>(text: &str) -> (u16, String) {
        let error = read_names::<T>("/v3/things/:id", pairs(text)).unwrap_err();
        (error.status(), error.message().to_owned())
    }
    let blamed = "the plugin's author has to correct this: the `Path` of the handler does not fit the route \
                  `/v3/things/:id`: path parameter";
    for (found, expected) in [
        (
            status::<OtherField>("id=7"),
            (500, format!("{blamed} `other` is missing")),
        ),
        (
            status::<(u8, u8)>("id=7"),
            (
                500,
                format!("{blamed}s: there are 1 values, but 2 are expected"),
            ),
        ),
        (
            status::<u8>(""),
            (
                500,
                format!("{blamed}s: there are 0 values, but exactly one is expected"),
            ),
        ),
        (
            status::<(OtherField,)>("id=7"),
            (
                500,
                format!("{blamed}s: is one value, but several are expected"),
            ),
        ),
        (
            status::<u8>("id=300"),
            (
                400,
                "path parameter `id` must be a whole number from 0 to 255, not `300`".to_owned(),
            ),
        ),
    ] {
        assert_eq!(found, expected);
    }
}

proptest! {
    #[test]
    fn no_query_makes_the_reader_panic(text in ".{0,200}") {
        let _ = everything(&text);
        let _ = read::<(Id, String)>("path parameter", pairs(&text));
        let _ = read::<Level>("path parameter", pairs(&text));
    }

    #[test]
    fn every_text_comes_back_as_it_was(text in ".*") {
        let found = read::<String>("path parameter", vec![("name".to_owned(), text.clone())]);
        prop_assert_eq!(found, Ok(text));
    }
}
