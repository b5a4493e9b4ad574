//! Several replicas with one PostgreSQL database and one NATS server: any of them answers, and changes at one are known
//! to the others. The programs are real ones, each in a separate process.

mod calls;
mod changes;
mod clocks;
mod hostile;
mod logs;
mod losses;
mod nats_server;

use data::testing::on_fresh_postgres;

use crate::harness::Cloud;
use nats_server::NatsServer;

/// Two replicas, and their shared servers.
pub(crate) struct Replicas {
    nats: NatsServer,
    pub(crate) database: String,
    pub(crate) a: Cloud,
    pub(crate) b: Cloud,
}

impl Replicas {
    /// Returns the configuration file of a replica, with these settings.
    pub(crate) fn settings(&self, settings: &str) -> String {
        configuration(&self.nats, settings)
    }

    /// Starts another replica, with the same database and bus.
    async fn another(&self) -> Cloud {
        replica(&self.database, &self.nats, "").await
    }
}

async fn replica(database: &str, nats: &NatsServer, settings: &str) -> Cloud {
    Cloud::start_with(database, &configuration(nats, settings)).await
}

fn configuration(nats: &NatsServer, settings: &str) -> String {
    format!("bus = '{}'\n{settings}", nats.url())
}

/// Runs a test with two replicas, unless this machine has no servers for them.
async fn on_two(test: impl AsyncFn(Replicas)) {
    on_two_with("", test).await;
}

/// As [`on_two`], with additional settings in their configuration files.
pub(crate) async fn on_two_with(settings: &str, test: impl AsyncFn(Replicas)) {
    on_fresh_postgres(async |database| {
        if let Some(replicas) = two_at(database, settings).await {
            test(replicas).await;
        }
    })
    .await;
}

/// Starts two replicas with an existing database; none if this machine has no NATS server.
pub(crate) async fn two_at(database: String, settings: &str) -> Option<Replicas> {
    let Some(program) = nats_server::program() else {
        println!("SKIPPED: there is no nats-server, so nothing ran with several replicas");
        return None;
    };
    let nats = NatsServer::start(&program);
    let a = replica(&database, &nats, settings).await;
    let b = replica(&database, &nats, settings).await;
    Some(Replicas {
        nats,
        database,
        a,
        b,
    })
}
