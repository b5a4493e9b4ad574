//! Takes readings of tanks and shows them in `GET /metrics` of the device: the example of the capability `metrics`.
use serde::Deserialize;
use supervisor_sdk::{Error, Json, Path, metrics, plugin};

plugin! {
    capabilities: { metrics => "shows how full the tanks are" }
    routes: { POST "/v3/tanks/:tank" => read }
}

#[derive(Deserialize)]
struct Reading {
    /// How full the tank is, from 0 to 1.
    level: f64,
}

async fn read(Path(tank): Path<String>, Json(reading): Json<Reading>) -> Result<(), Error> {
    if !(0.0..=1.0).contains(&reading.level) {
        return Err(Error::bad_request("`level` is from 0 to 1"));
    }
    let labels = [("tank", tank.as_str())];
    metrics::set_gauge("level", &labels, reading.level).await?;
    metrics::add_to_counter("readings_total", &labels, 1).await?;
    Ok(())
}
