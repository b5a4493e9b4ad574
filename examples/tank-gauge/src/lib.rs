//! Accepts readings of tanks, shows them in `GET /metrics` of the device, and adds the latest one to the device's
//! report to its cloud: the example of the capabilities `metrics` and `report`.
use serde::Deserialize;
use supervisor_sdk::{Error, Json, Path, metrics, plugin, report};

plugin! {
    capabilities: {
        metrics => "shows how full the tanks are"
        report => "tells the cloud of the latest reading"
    }
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
    report::set("last_tank", tank).await?;
    let percent = (reading.level * 1000.0).round() / 10.0;
    report::set_with_unit("last_level", percent, "%").await?;
    Ok(())
}
