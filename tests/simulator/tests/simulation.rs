//! Simulated devices at the real cloud, on SQLite: `cargo xtask test` builds it.

use std::time::Duration;

use simulator::{At, Outcome, Plan, Setup, Troubles, run};
use tests::distribution;

const DEVICES: u32 = 20;

async fn simulated() -> anyhow::Result<Outcome> {
    let plan = Plan {
        devices: DEVICES,
        releases: 1,
        pins: 2,
        download: Duration::from_millis(100),
        interval: None,
        at_once: 8,
        patience: Duration::from_secs(90),
        board: "generic-amd64".to_owned(),
    };
    let at = At::Own(Setup {
        program: distribution().join("bin/fleet-cloud"),
        database: None,
        pushes_per_second: None,
    });
    run(&plan, &at, &Troubles::default()).await
}

#[tokio::test]
async fn all_devices_register_and_follow_the_second_release_by_a_push() {
    // Without a notification a device would poll ten minutes later, long after the patience is over.
    let outcome = simulated().await.unwrap();
    let names: Vec<&str> = outcome
        .phases
        .iter()
        .map(|phase| phase.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "registered",
            "on release 1",
            "connected",
            "on release 2",
            "pinned 2 times"
        ]
    );
    let [_, first, _, second, _] = outcome.phases.as_slice() else {
        panic!("{outcome:?}");
    };
    for phase in [first, second] {
        assert!(phase.polls >= 20 && phase.reports >= 20, "{phase:?}");
        let (target_delay, report_delay) = (
            phase.target_delay.expect("targets"),
            phase.report_delay.expect("reports"),
        );
        assert!(target_delay.max < report_delay.max, "{phase:?}");
    }
    assert!(second.cloud_memory.expect("its own cloud") > 0);
    assert!(outcome.table().contains("on release 2"));
}
