use serde_json::json;
use supervisor_testing::{Host, build};

#[tokio::test]
async fn greets_by_name_and_refuses_an_empty_greeting() {
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy("[plugins.greeter]\ngrants = [\"device\"]")
        .start()
        .await;

    let answer = host.get("/v3/greet/Ada%20L?greeting=Salut").await;
    assert_eq!(
        answer.json(),
        json!({ "greeting": "Salut, Ada L! I am local." })
    );

    let answer = host.post("/v3/greet/Ada", json!({ "greeting": "" })).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["message"], "`greeting` is empty");
}
