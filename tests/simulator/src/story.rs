//! The story of a simulation: a fleet with a first release, devices that join it, and further releases.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::sleep;

use crate::admin::{Admin, Fleet};
use crate::cloud::{Cloud, Setup};
use crate::device::Device;
use crate::device_context::{DeviceContext, REQUESTS};
use crate::outcome::{Outcome, Phase, Spread};
use crate::process::{Usage, allow_open_files, usage};
use crate::troubles::Troubles;

/// The pause between two checks of how far the devices are.
const LOOK: Duration = Duration::from_millis(50);
/// The pauses between two requests to the cloud, and between two lines of progress if there is no terminal.
const ASK: Duration = Duration::from_secs(1);
const SAY: Duration = Duration::from_secs(10);
/// A device reports at most every 10 s: after this long it reports a change at once.
const REST: Duration = Duration::from_millis(10_500);
/// The pause between two notifications of a hundred devices: after it the cloud may notify them at once again.
const PAUSE: Duration = Duration::from_millis(1_200);
const HUNDRED: u32 = 100;
/// Open files in addition to those of tunnels and requests.
const FILES: usize = 400;

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The number of devices.
    pub devices: u32,
    /// The number of releases after the first one.
    pub releases: u32,
    /// How often all devices are then pinned, alternately to the last and the first release.
    pub pins: u32,
    /// How long a device takes to apply a release.
    pub download: Duration,
    /// The pause between two polls of a device; without one, that of its target.
    pub interval: Option<Duration>,
    /// How many devices register at a time.
    pub at_once: usize,
    /// The time limit of each part.
    pub patience: Duration,
    /// The type of board, a slug of the cloud's catalogue.
    pub board: String,
}

/// The cloud.
#[derive(Debug, Clone)]
pub enum At {
    /// Our own cloud.
    Own(Setup),
    /// Another cloud, with the token or key of a user who may create fleets.
    There {
        /// The address of the cloud.
        url: String,
        /// The token or key of the user.
        token: String,
    },
}

/// Runs the simulation. `troubles` counts failures, as a layer of the subscriber.
///
/// # Errors
/// If devices are not done in time, or the cloud fails.
pub async fn run(plan: &Plan, at: &At, troubles: &Troubles) -> Result<Outcome> {
    allow_open_files(u64::from(plan.devices) + u64::try_from(REQUESTS + FILES)?)?;
    let (own, admin) = match at {
        At::Own(setup) => {
            let cloud = Cloud::start(setup)?;
            let admin = Admin::sign_in(cloud.url()).await?;
            (Some(cloud), admin)
        }
        At::There { url, token } => (None, Admin::with_token(url, token)),
    };
    let name = format!("simulation-{}", std::process::id());
    let fleet = admin.fleet(&name, &plan.board).await?;
    let config = fleet.config().await?;
    let common = DeviceContext::new(config, &plan.board, plan.interval, plan.download);
    let story = Story {
        plan,
        own,
        fleet,
        common: &common,
        troubles,
    };
    let report = story.tell().await;
    common.stop.cancel();
    report
}

fn own_usage() -> Result<Usage> {
    usage(std::process::id())
}

struct Story<'a> {
    plan: &'a Plan,
    own: Option<Cloud>,
    fleet: Fleet,
    common: &'a std::sync::Arc<DeviceContext>,
    troubles: &'a Troubles,
}

/// The counters at the beginning of a phase.
struct StoryRun {
    at: Instant,
    polls: u64,
    reports: u64,
    errors: u64,
    cloud: Option<Usage>,
}

impl Story<'_> {
    async fn tell(&self) -> Result<Outcome> {
        let all = usize::try_from(self.plan.devices)?;
        let (commit, release) = self.fleet.release(1).await?;
        self.fleet.finish(release).await?;
        let mut releases = vec![(commit.clone(), release)];
        let before = own_usage()?;
        let mut phases = Vec::new();

        let begun = self.begin()?;
        self.common.tally.aim(&commit);
        let starting = Device::start_all(self.common, self.plan.devices, self.plan.at_once);
        let joining = self.progress("registered", all, || {
            self.common.tally.registrations().len()
        });
        tokio::try_join!(starting, joining)?;
        let registered = self.common.tally.registrations();
        phases.push(self.end("registered", &begun, registered, None)?);
        self.all_run(all).await?;
        let reached = self.common.tally.reached();
        phases.push(self.end(
            "on release 1",
            &begun,
            reached.report_delays,
            Some(reached.target_delays),
        )?);

        let without = self.cloud()?;
        let begun = self.begin()?;
        self.common.open_tunnels();
        self.all_connected(all).await?;
        phases.push(self.end("connected", &begun, Vec::new(), None)?);
        let (after, with) = (own_usage()?, self.cloud()?);

        for number in 2..=self.plan.releases.saturating_add(1) {
            sleep(REST).await;
            let (commit, release) = self.fleet.release(number).await?;
            let begun = self.begin()?;
            self.common.tally.aim(&commit);
            self.fleet.finish(release).await?;
            self.all_run(all).await?;
            let reached = self.common.tally.reached();
            let name = format!("on release {number}");
            phases.push(self.end(
                &name,
                &begun,
                reached.report_delays,
                Some(reached.target_delays),
            )?);
            self.is_known_of(release, all).await?;
            releases.push((commit, release));
        }
        if self.plan.pins > 0 {
            phases.push(self.pins(all, &releases).await?);
        }

        let each = |before: u64, after: u64| {
            after.saturating_sub(before) / u64::from(self.plan.devices.max(1))
        };
        let troubles = self.troubles.all().into_iter();
        Ok(Outcome {
            devices: self.plan.devices,
            phases,
            bytes_a_device: each(before.resident, after.resident),
            bytes_a_tunnel: without
                .zip(with)
                .map(|(without, with)| each(without.resident, with.resident)),
            troubles: troubles
                .map(|trouble| (trouble.times, trouble.message))
                .collect(),
        })
    }

    /// Pins all devices at once, alternately to each of two releases, and waits until they have received it.
    async fn pins(&self, all: usize, releases: &[(String, i64)]) -> Result<Phase> {
        let begun = self.begin()?;
        let (mut target_delays, mut count) = (Vec::new(), 0);
        for turn in 0..self.plan.pins {
            let of = match turn % 2 {
                0 => releases.first(),
                _ => releases.last(),
            };
            let (commit, release) = of.context("there is no release")?;
            sleep(PAUSE * self.plan.devices.min(HUNDRED) / HUNDRED).await;
            self.common.tally.aim(commit);
            self.fleet.pin(*release).await?;
            self.progress("pinned", all, || self.common.tally.having())
                .await?;
            target_delays.extend(self.common.tally.reached().target_delays);
            count += 1;
        }
        let name = format!("pinned {count} times");
        self.end(&name, &begun, Vec::new(), Some(target_delays))
    }

    fn cloud(&self) -> Result<Option<Usage>> {
        self.own.as_ref().map(Cloud::usage).transpose()
    }

    fn begin(&self) -> Result<StoryRun> {
        Ok(StoryRun {
            at: Instant::now(),
            polls: self.common.tally.polls(),
            reports: self.common.tally.reports(),
            errors: self.troubles.times(),
            cloud: self.cloud()?,
        })
    }

    fn end(
        &self,
        name: &str,
        begun: &StoryRun,
        report_delays: Vec<Duration>,
        target_delays: Option<Vec<Duration>>,
    ) -> Result<Phase> {
        let cloud = begun.cloud.zip(self.cloud()?);
        Ok(Phase {
            name: name.to_owned(),
            seconds: begun.at.elapsed().as_secs_f64(),
            target_delay: target_delays.map(Spread::from_times),
            report_delay: (!report_delays.is_empty()).then(|| Spread::from_times(report_delays)),
            polls: self.common.tally.polls() - begun.polls,
            reports: self.common.tally.reports() - begun.reports,
            errors: self.troubles.times() - begun.errors,
            cloud_cpu: cloud.map(|(before, now)| (now.cpu - before.cpu).as_secs_f64()),
            cloud_memory: cloud.map(|(_, now)| now.resident),
        })
    }

    /// Waits until every device runs the goal's release.
    async fn all_run(&self, all: usize) -> Result<()> {
        self.progress("on the release", all, || self.common.tally.running())
            .await
    }

    /// Waits until the count reaches `all`, and shows the progress.
    async fn progress(&self, what: &str, all: usize, count: impl Fn() -> usize) -> Result<()> {
        let bar = ProgressBar::new(u64::try_from(all)?);
        if let Ok(style) = ProgressStyle::with_template("{msg} {pos}/{len} {wide_bar} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        let begun = Instant::now();
        let mut reported = begun;
        loop {
            let there = count();
            bar.set_position(u64::try_from(there)?);
            if there >= all {
                bar.finish_and_clear();
                return Ok(());
            }
            if begun.elapsed() > self.plan.patience {
                bail!(
                    "{there} of {all} devices are {what} after {:?}{}",
                    self.plan.patience,
                    self.what_went_wrong()
                );
            }
            if !std::io::stderr().is_terminal() && reported.elapsed() > SAY {
                eprintln!("{what}: {there} of {all}{}", self.what_went_wrong());
                reported = Instant::now();
            }
            self.cloud()?;
            sleep(LOOK).await;
        }
    }

    /// Waits until the cloud has a tunnel to each device.
    async fn all_connected(&self, all: usize) -> Result<()> {
        let filter = "%20and%20is_connected_to_vpn%20eq%20true";
        let begun = Instant::now();
        loop {
            let there = self.fleet.count(filter).await?;
            if there >= all {
                return Ok(());
            }
            if begun.elapsed() > self.plan.patience {
                bail!(
                    "{there} of {all} devices are connected{}",
                    self.what_went_wrong()
                );
            }
            sleep(ASK).await;
        }
    }

    /// Checks that the cloud shows all devices on the release that they report.
    async fn is_known_of(&self, release: i64, all: usize) -> Result<()> {
        let filter = format!("%20and%20is_running__release%20eq%20{release}");
        match self.fleet.count(&filter).await? {
            there if there >= all => Ok(()),
            there => bail!("the cloud shows {there} of {all} devices on the release"),
        }
    }

    fn what_went_wrong(&self) -> String {
        let troubles = self.troubles.all().into_iter();
        troubles
            .map(|trouble| format!("\n{} times: {}", trouble.times, trouble.message))
            .collect()
    }
}
