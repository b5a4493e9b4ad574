//! Switches the power rails of a board for plugins that are allowed to: the example of a plugin's own
//! actions.
use serde::{Deserialize, Serialize};
use supervisor_sdk::{Caller, Error, Json, plugin, store};

plugin! {
    description: "Switches the power rails of the board, for plugins that may"
    capabilities: { store => "keeps which rails are on" }
    actions: { list => list, set => set }
}

const RAILS: [&str; 2] = ["3v3", "5v"];

#[derive(Serialize, Deserialize)]
struct Rail {
    name: String,
    on: bool,
}

async fn list() -> Result<Json<Vec<Rail>>, Error> {
    let mut rails = Vec::new();
    for name in RAILS {
        let on = store::get_json(name).await?.unwrap_or(false);
        rails.push(Rail {
            name: name.to_owned(),
            on,
        });
    }
    Ok(Json(rails))
}

/// Switches a rail. Returns who switched it, according to the device.
async fn set(caller: Caller, Json(rail): Json<Rail>) -> Result<Json<Option<String>>, Error> {
    if !RAILS.contains(&rail.name.as_str()) {
        return Err(Error::not_found(format!(
            "there is no rail `{}`",
            rail.name
        )));
    }
    store::set_json(&rail.name, &rail.on).await?;
    Ok(Json(caller.plugin().map(str::to_owned)))
}
