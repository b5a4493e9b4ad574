//! Greets callers by name: the example of docs/plugins.md.
use serde::{Deserialize, Serialize};
use supervisor_sdk::{Error, Json, Path, Query, device, plugin};

plugin! {
    capabilities: { device => "signs the greeting with the device's name" }
    routes: { GET "/v3/greet/:name" => greet, POST "/v3/greet/:name" => greet_by_post }
}

#[derive(Deserialize, Serialize)]
struct Words {
    greeting: String,
}

async fn greet(name: Path<String>, Query(words): Query<Words>) -> Result<Json<Words>, Error> {
    if words.greeting.is_empty() {
        return Err(Error::bad_request("`greeting` is empty"));
    }
    let me = device::identity().name;
    let greeting = format!("{}, {}! I am {me}.", words.greeting, name.0);
    Ok(Json(Words { greeting }))
}

async fn greet_by_post(name: Path<String>, Json(words): Json<Words>) -> Result<Json<Words>, Error> {
    greet(name, Query(words)).await
}
