use serde_json::{Value, json};
use supervisor_testing::{GateVerdict, Host, InstalledRelease, RunningHost, build};

async fn start() -> RunningHost {
    let policy = "[plugins.release-check]\ngrants = [\"store\"]\nevents = [\"health-gate\"]\n";
    let host = Host::new().plugin(build(env!("CARGO_MANIFEST_DIR")));
    host.policy(policy).start().await
}

fn release(commit: &str) -> InstalledRelease {
    InstalledRelease {
        app_id: 7,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec!["press".to_owned()],
        commit: commit.to_owned(),
    }
}

async fn say(host: &RunningHost, report: &Value) -> u16 {
    let request = http::Request::put("/v3/release-check/7").body(report.to_string());
    host.send(request).await.status.as_u16()
}

#[tokio::test]
async fn a_release_is_healthy_once_it_is_confirmed_and_so_must_be_the_next() {
    let host = start().await;
    let GateVerdict::NotYet {
        plugin,
        reason,
        delay,
    } = host.judge_release(&release("c1")).await
    else {
        panic!("nobody has said anything");
    };
    assert_eq!(
        (&*plugin, &*reason, delay.as_secs()),
        ("release-check", "nobody has confirmed that it works", 10)
    );
    assert_eq!(say(&host, &json!({ "healthy": true })).await, 200);
    let verdict = host.judge_release(&release("c1")).await;
    assert_eq!(verdict, GateVerdict::Healthy);
    let verdict = host.judge_release(&release("c2")).await;
    assert!(matches!(verdict, GateVerdict::NotYet { .. }), "{verdict:?}");
}

#[tokio::test]
async fn a_release_that_is_reported_gives_way_at_once_and_another_is_not_meant() {
    let host = start().await;
    let report = json!({ "healthy": false, "reason": "it prints blank pages", "commit": "c2" });
    assert_eq!(say(&host, &report).await, 200);
    assert_eq!(
        host.judge_release(&release("c2")).await,
        GateVerdict::Unhealthy {
            plugin: "release-check".to_owned(),
            reason: "it prints blank pages".to_owned(),
        }
    );
    let verdict = host.judge_release(&release("c1")).await;
    assert!(matches!(verdict, GateVerdict::NotYet { .. }), "{verdict:?}");
}

#[tokio::test]
async fn a_report_without_a_reason_is_refused() {
    let host = start().await;
    assert_eq!(say(&host, &json!({ "healthy": false })).await, 400);
}
