//! Greets, counts its calls and streams: the example of a plugin in Rust that `plugin.toml` declares.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use supervisor_sdk::{Body, Error, Json, Path, Query, Response, log, plugin, store, timer};

plugin! {}

#[derive(Deserialize)]
struct Words {
    #[serde(default = "english")]
    language: String,
}

fn english() -> String {
    "en".to_owned()
}

#[derive(Serialize)]
struct Greeting {
    greeting: String,
    calls: u64,
}

async fn hello(
    Path(name): Path<String>,
    Query(words): Query<Words>,
) -> Result<Json<Greeting>, Error> {
    let word = match words.language.as_str() {
        "en" => "Hello",
        "fr" => "Salut",
        language => {
            let message = format!("there is no greeting in `{language}`");
            return Err(Error::not_found(message));
        }
    };
    let calls = store::update_json("calls", |calls: Option<u64>| calls.unwrap_or(0) + 1).await?;
    log::info(format_args!("{name} is greeted"));
    let greeting = format!("{word}, {name}!");
    Ok(Json(Greeting { greeting, calls }))
}

#[derive(Deserialize)]
struct Countdown {
    #[serde(default = "three")]
    seconds: u32,
}

fn three() -> u32 {
    3
}

/// Streams: each piece goes to the caller as soon as it is written.
async fn countdown(Path(name): Path<String>, Query(countdown): Query<Countdown>) -> Response {
    Response::stream(Response::TEXT, async move |out| {
        for left in (1..=countdown.seconds).rev() {
            // An error means that the caller has disconnected.
            if out.write(format!("{left}\n")).await.is_err() {
                return;
            }
            timer::sleep(Duration::from_secs(1)).await;
        }
        let _ = out.write(format!("Hello, {name}!\n")).await;
    })
}

#[derive(Deserialize)]
struct Order {
    item: String,
    #[serde(default = "one")]
    count: i64,
}

fn one() -> i64 {
    1
}

#[derive(Serialize)]
struct Receipt {
    ordered: String,
    count: i64,
}

async fn order(Json(order): Json<Order>) -> Result<Json<Receipt>, Error> {
    if order.count < 1 {
        return Err(Error::bad_request("`count` must be at least 1"));
    }
    Ok(Json(Receipt {
        ordered: order.item,
        count: order.count,
    }))
}

/// Streams both ways: answers in capitals while the request is still arriving.
async fn shout(mut text: Body) -> Response {
    Response::stream(Response::TEXT, async move |out| {
        while let Some(mut piece) = text.chunk().await {
            piece.make_ascii_uppercase();
            if out.write(piece).await.is_err() {
                return;
            }
        }
    })
}
