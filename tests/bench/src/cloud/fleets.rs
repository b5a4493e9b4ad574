//! Simulated fleets, in their own process: how long a release takes to reach all devices, and what that costs.

use anyhow::{Context as _, Result, bail};
use simulator::Outcome;
use tokio::process::Command;

use super::place::{Kind, Place};
use super::scene::program;
use crate::figures::{Section, mebibytes};

/// More notifications than any cloud sends.
const AT_ONCE: &str = "1000000";
/// How many times all devices are pinned, with a second in between.
const PINS: &str = "20";
/// How long one part of a simulation may take, in seconds.
const PATIENCE: &str = "300";

pub(crate) async fn measure(kinds: &[Kind], large: bool) -> Result<Section> {
    let mut section = Section::new("A simulated fleet");
    let sizes: &[u32] = if large {
        &[100, 1_000, 10_000]
    } else {
        &[100, 1_000]
    };
    for kind in kinds {
        for size in sizes {
            let devices = size.to_string();
            let words = ["--devices", &devices, "--releases", "1"];
            let place = kind.fresh().await?;
            let outcome = simulated(&place, &words).await?;
            tell(&outcome, place.name, &mut section)?;
            place.end().await;
            let place = kind.fresh().await?;
            let words = [&words[..], &["--pushes-per-second", AT_ONCE]].concat();
            let outcome = simulated(&place, &words).await?;
            let release = phase(&outcome, "on release 2")?;
            section.add(
                format!("{size} devices told at once, {}", place.name),
                on_release(&outcome, release),
                "",
                "",
            );
            place.end().await;
        }
    }
    section.note(
        "Time counts from the request that ends the release until the cloud has taken the report of the last device \
         that it runs. By default a hundred devices are notified at once and a hundred a second from then on, which is \
         what larger fleets wait for.",
    );
    Ok(section)
}

pub(crate) async fn measure_push(kinds: &[Kind]) -> Result<Section> {
    let mut section = Section::new("Push");
    for kind in kinds {
        for size in ["1", "100"] {
            let place = kind.fresh().await?;
            let words = ["--devices", size, "--releases", "1", "--pins", PINS];
            let outcome = simulated(&place, &words).await?;
            let pinned = phase(&outcome, &format!("pinned {PINS} times"))?;
            let reaction = pinned.target_delay.context("nobody was notified")?;
            section.add(
                format!(
                    "from the PATCH of a pin to a device's new target, {size} connected, {}",
                    place.name
                ),
                format!(
                    "p50 {:.0} ms, p99 {:.0} ms, the last of all {:.0} ms",
                    reaction.p50 * 1e3,
                    reaction.p99 * 1e3,
                    reaction.max * 1e3
                ),
                "",
                "1 s",
            );
            place.end().await;
        }
    }
    section.note(
        "Devices of a simulated fleet are pinned twenty times by one request for all of them. What more than a hundred \
         wait for is in the next section.",
    );
    Ok(section)
}

async fn simulated(place: &Place, words: &[&str]) -> Result<Outcome> {
    let mut simulator = Command::new(program("simulator")?);
    simulator
        .args(words)
        .args(["--database", &place.url, "--json"])
        .args(["--patience", PATIENCE])
        .env("SIMULATOR_FLEET_CLOUD", program("fleet-cloud")?)
        .stderr(std::process::Stdio::inherit())
        .kill_on_drop(true);
    let output = simulator.output().await?;
    if !output.status.success() {
        bail!("the simulation {words:?} failed ({})", output.status);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn phase<'a>(outcome: &'a Outcome, name: &str) -> Result<&'a simulator::Phase> {
    let mut phases = outcome.phases.iter();
    phases
        .find(|phase| phase.name == name)
        .with_context(|| format!("the simulation has no part `{name}`"))
}

/// Describes how a release reached all devices.
fn on_release(outcome: &Outcome, release: &simulator::Phase) -> String {
    let [target_delay, report_delay] =
        [release.target_delay, release.report_delay].map(Option::unwrap_or_default);
    format!(
        "each has its target after p50 {:.1} s, at most {:.1} s; all run it after {:.1} s (p50 {:.1} s), {}",
        target_delay.p50,
        target_delay.max,
        release.seconds,
        report_delay.p50,
        each(outcome, release.cloud_cpu),
    )
}

fn each(outcome: &Outcome, cpu: Option<f64>) -> String {
    let cpu = cpu.unwrap_or_default() * 1e3 / f64::from(outcome.devices);
    format!("{cpu:.2} ms of the cloud's processor a device")
}

fn tell(outcome: &Outcome, name: &str, section: &mut Section) -> Result<()> {
    let what = |what: &str| format!("{} devices {what}, {name}", outcome.devices);
    let registered = phase(outcome, "registered")?;
    section.add(
        what("registered, 64 at a time"),
        format!(
            "all after {:.1} s, {}",
            registered.seconds,
            each(outcome, registered.cloud_cpu)
        ),
        "",
        "",
    );
    let release = phase(outcome, "on release 2")?;
    section.add(
        what("on a new release"),
        on_release(outcome, release),
        format!("{} errors", release.errors),
        "",
    );
    let tunnel = outcome.bytes_a_tunnel.unwrap_or_default();
    section.add(
        what("connected"),
        format!(
            "{} KiB a tunnel in the cloud, which has {}",
            tunnel >> 10,
            mebibytes(release.cloud_memory.unwrap_or_default())
        ),
        format!(
            "{} KiB a device in the simulator",
            outcome.bytes_a_device >> 10
        ),
        "",
    );
    Ok(())
}
