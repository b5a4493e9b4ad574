//! A plugin: `plugin.toml` says what it answers and needs, and names the functions here.

use supervisor_sdk::{Error, Path, plugin, store};

plugin! {}

async fn hello(Path(name): Path<String>) -> Result<String, Error> {
    // Each call runs in a fresh instance, so what must last is in the store.
    let count = store::update_json("count", |count: Option<u64>| count.unwrap_or(0) + 1).await?;
    Ok(format!("Hello, {name}! This is call {count}.\n"))
}
