//! A store that was damaged or lost while the device was off: the device keeps its identity, and so do its services.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tests::{Stage, until};

async fn survives_damage(stage: &mut Stage) {
    let image = stage.publish("kept");
    let command = if stage.on_docker {
        json!(["sh", "-c", "exec sleep 1000"])
    } else {
        json!(["wait"])
    };
    let target = json!({ "local": { "apps": { stage.app.to_string(): {
        "name": "kept", "commit": "c1", "releaseId": "1", "services": { "1": {
            "serviceName": "web", "image": image, "imageId": stage.app * 10, "command": command,
            "environment": {}, "labels": {}, "stop_grace_period": "1s",
        } },
        "networks": { "own": {} }, "volumes": { "data": {} },
    } } } });
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("truncated", |path| fs::write(path, "").unwrap()),
        ("overwritten", |path| fs::write(path, [0xa5; 9000]).unwrap()),
        ("removed", |path| fs::remove_file(path).unwrap()),
    ];
    stage.device.set_target(&target).await;
    stage.device.until_applied().await;
    let identity = stage.device.state_dir().join("identity");
    let before = fs::read_to_string(&identity).unwrap();
    for (what, damage) in damages {
        stage.device.kill().await;
        damage(&stage.device.state_dir().join("store.db"));
        stage.device.start_again().await;
        assert_eq!(fs::read_to_string(&identity).unwrap(), before, "{what}");
        stage.device.set_target(&target).await;
        stage.device.until_applied().await;
        until("one service to run", || async {
            let services = stage.device.json("/v2/containerId").await["services"].clone();
            match services.as_object().map(serde_json::Map::len) {
                Some(1) => Ok(()),
                _ => Err((what, services)),
            }
        })
        .await;
    }
    let nothing: Value = json!({ "local": { "apps": {} } });
    stage.device.set_target(&nothing).await;
    stage.device.until_applied().await;
}

#[tokio::test]
async fn components_of_a_device_that_lost_its_store_are_its_own() {
    survives_damage(&mut Stage::on_wasm(7150).await).await;
}

#[tokio::test]
async fn containers_of_a_device_that_lost_its_store_are_its_own() {
    if let Some(mut stage) = Stage::on_docker(7151).await {
        survives_damage(&mut stage).await;
    }
}
