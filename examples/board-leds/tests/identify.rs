use supervisor_testing::{Host, Identity, build};

fn host(device_type: &str) -> Host {
    let identity = Identity {
        uuid: "0".repeat(32),
        name: "local".to_owned(),
        device_type: device_type.to_owned(),
        arch: "aarch64".to_owned(),
    };
    let stock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/led-blink");
    Host::new()
        .plugin(build(stock))
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy("[plugins.led-blink]\ngrants = [\"led\"]\n[plugins.board-leds]\ngrants = [\"led\"]")
        .device(identity)
        .led("ACT", 7, 255)
        .led("acme:green:left", 7, 1)
        .led("acme:green:right", 7, 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn on_its_board_it_takes_the_place_of_the_stock_plugin() {
    let host = host("acme-gateway2").start().await;
    host.identify().await;
    for name in ["acme:green:left", "acme:green:right"] {
        host.led_becomes(name, 1).await;
        host.led_becomes(name, 0).await;
    }
    assert_eq!(host.led("ACT").await, 7, "the stock plugin ran, too");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_other_boards_the_stock_plugin_stays() {
    let host = host("raspberrypi4-64").start().await;
    host.identify().await;
    host.led_becomes("ACT", 255).await;
    assert_eq!(host.led("acme:green:left").await, 7);
}
