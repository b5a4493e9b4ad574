//! Limits on the number of lines of a device, and of all devices of an organization together: quotas that
//! administrators of the cloud can change (`data::quota`). Lines beyond them are dropped, and the log states how many.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use cloud_core::cloud::Cloud;
use data::quota::LogLineQuotas;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How many seconds' worth of lines may arrive at once.
const BURST: u32 = 10;
/// How long a stream uses quotas before it reads them again.
const FRESH: Duration = Duration::from_secs(60);

/// What lines are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sender {
    Device(i64),
    Organization(i64),
}

type Limiter = Arc<DefaultKeyedRateLimiter<Sender>>;

/// Recently sent lines, counted separately for each rate in use.
#[derive(Default)]
pub(super) struct LineLimits(Mutex<HashMap<NonZeroU32, Limiter>>);

impl LineLimits {
    fn limiter(&self, rate: u32) -> Option<Limiter> {
        let rate = NonZeroU32::new(rate)?;
        let burst = rate.saturating_mul(NonZeroU32::MIN.saturating_add(BURST - 1));
        let limiter = || {
            Arc::new(RateLimiter::keyed(
                Quota::per_second(rate).allow_burst(burst),
            ))
        };
        Some(self.0.lock().entry(rate).or_insert_with(limiter).clone())
    }

    /// Removes senders that sent nothing for a while.
    pub(super) fn tidy(&self) {
        self.0.lock().retain(|_, limiter| {
            limiter.retain_recent();
            limiter.shrink_to_fit();
            !limiter.is_empty() || Arc::strong_count(limiter) > 1
        });
    }
}

/// The limits of one stream of a device.
pub(super) struct LineShare {
    device: i64,
    quotas: LogLineQuotas,
    /// None if nothing may be sent.
    of_device: Option<Limiter>,
    of_organization: Option<Limiter>,
    until: Instant,
}

impl LineShare {
    /// Uses the current quotas; if they cannot be read, the defaults.
    pub(super) async fn load(cloud: &Cloud, limits: &LineLimits, device: i64) -> Self {
        let defaults = &cloud.environment.quotas;
        let quotas = match cloud.database.log_line_quotas(device, defaults).await {
            Ok(quotas) => quotas,
            Err(error) => {
                tracing::warn!(device, "failed to read the line quota: {error}");
                LogLineQuotas {
                    organization: None,
                    of_device: defaults.log_lines_per_second,
                    of_organization: defaults.organization_log_lines_per_second,
                }
            }
        };
        LineShare {
            device,
            quotas,
            of_device: limits.limiter(quotas.of_device),
            of_organization: limits.limiter(quotas.of_organization),
            until: Instant::now() + FRESH,
        }
    }

    /// Reads the quotas again if that is due.
    pub(super) async fn refresh(&mut self, cloud: &Cloud, limits: &LineLimits) {
        if self.until <= Instant::now() {
            *self = Self::load(cloud, limits, self.device).await;
        }
    }

    /// Counts one more line; returns whether it may be sent.
    pub(super) fn takes(&self) -> bool {
        let may = |limiter: &Option<Limiter>, sender| {
            let limiter = limiter.as_ref();
            limiter.is_some_and(|limiter| limiter.check_key(&sender).is_ok())
        };
        may(&self.of_device, Sender::Device(self.device))
            && self
                .quotas
                .organization
                .is_none_or(|of| may(&self.of_organization, Sender::Organization(of)))
    }
}
