//! A plugin. `plugin.toml` says which routes it answers and what it needs, and names the functions in this file.

use supervisor_sdk::{Error, Path, plugin, store};

plugin! {}

async fn hello(Path(name): Path<String>) -> Result<String, Error> {
    // Each call runs in a fresh instance, so lasting data belongs in the store.
    let count = store::update_json("count", |count: Option<u64>| count.unwrap_or(0) + 1).await?;
    Ok(format!("Hello, {name}! This is call {count}.\n"))
}
