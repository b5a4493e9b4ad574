use std::io;

use futures::stream;
use http::header::CONTENT_TYPE;
use plugin_test_host::protocol::ACTION_BYTES;

use super::*;

const HERE: &str = "127.0.0.1:40000";
const START: &str = "{\"start\":true}";

fn step(path: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    request.body(body.into()).unwrap()
}

/// Returns the refusal of a step while the plugin is being built, as its status and its message.
async fn refused(client: &str, request: Request<Body>) -> (u16, String) {
    let client = client.parse().unwrap();
    let nothing = RwLock::new(ServedPlugin::Nothing);
    let routes = StepRoutes::default();
    let performed = routes.perform(&nothing, client, request).await;
    let StepRefusal(status, message) = performed.unwrap_err();
    (status.as_u16(), message)
}

#[tokio::test]
async fn a_step_comes_from_a_program_on_this_machine_as_json() {
    for client in [HERE, "[::1]:40000", "[::ffff:127.0.0.1]:40000"] {
        let (status, message) = refused(client, step(EVENT, START)).await;
        assert_eq!((status, &*message), (503, "the plugin is being built"));
    }
    for client in ["192.0.2.7:40000", "[2001:db8::1]:40000"] {
        let (status, message) = refused(client, step(ACTION, START)).await;
        assert_eq!(status, 403, "{client}");
        assert!(message.contains("only programs on the machine"));
    }
    for (kind, expected) in [
        ("application/json", 503),
        ("Application/JSON; charset=utf-8", 503),
        // What a form of another site's page can have.
        ("text/plain", 415),
        ("text/plain; application/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("", 415),
    ] {
        let mut request = step(EVENT, START);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        assert_eq!(refused(HERE, request).await.0, expected, "{kind}");
    }
    let mut request = step(EVENT, START);
    request.headers_mut().clear();
    assert_eq!(refused(HERE, request).await.0, 415);
    for method in [Method::GET, Method::PUT, Method::OPTIONS] {
        let mut request = step(EVENT, START);
        *request.method_mut() = method;
        assert_eq!(refused(HERE, request).await.0, 405);
    }
    for path in ["/@run", "/@run/", "/@run/events", "/@run/event/"] {
        assert!(StepRoutes::contain(path), "{path}");
        assert_eq!(refused(HERE, step(path, START)).await.0, 404, "{path}");
    }
    for path in ["/", "/@running/event", "/v3/@run/event"] {
        assert!(!StepRoutes::contain(path), "{path}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_a_step_is_refused_with_the_reason() {
    let deep = format!("{{\"name\":\"set\",\"json\":{}1}}", "[".repeat(1 << 20));
    let long = format!(
        "{{\"name\":\"set\",\"text\":\"{}\"}}",
        "x".repeat(ACTION_BYTES + 1)
    );
    for (path, body, expected) in [
        (
            EVENT,
            "",
            "the body is not an object in JSON: EOF while parsing",
        ),
        (
            ACTION,
            "[]",
            "the body is not an object in JSON: invalid type: sequence",
        ),
        (
            ACTION,
            "name = \"set\"",
            "the body is not an object in JSON: expected",
        ),
        (
            ACTION,
            "{\"action\":\"set\"}",
            "the body must have the keys of [[action]] of a test: there is no key `action` here; the keys are `name`",
        ),
        (ACTION, "{}", "it must have one of `name`, `identify`"),
        (EVENT, "{}", "it must have one of `start`, `schedule`"),
        (
            ACTION,
            "{\"identify\":{\"seconds\":16}}",
            "`seconds` of `identify` is 16, but must be from 1 to 15",
        ),
        (
            ACTION,
            "{\"name\":\"set\",\"answer\":{}}",
            "it has an `answer`, which only `supervisor-plugin test` compares",
        ),
        (
            EVENT,
            "{\"update_gate\":{},\"answer\":{}}",
            "it has an `answer`, which only",
        ),
        (ACTION, deep.as_str(), "recursion limit exceeded"),
        (ACTION, long.as_str(), "an action takes at most 524288"),
    ] {
        let body = body.to_owned();
        let (status, message) = refused(HERE, step(path, body)).await;
        assert_eq!(status, 400, "{message}");
        assert!(message.contains(expected), "{expected}: {message}");
    }
    let (status, _) = refused(HERE, step(ACTION, vec![0xff; 9])).await;
    assert_eq!(status, 400);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_long_or_does_not_arrive_is_not_waited_for() {
    let long = vec![b' '; BODY + 1];
    let (status, message) = refused(HERE, step(ACTION, long)).await;
    assert_eq!((status, &*message), (413, "the body has more than 4 MiB"));
    let endless = stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from_static(&[b' '; 4096])));
    let (status, _) = refused(HERE, step(ACTION, Body::from_stream(endless))).await;
    assert_eq!(status, 413);

    let begun = tokio::time::Instant::now();
    let never = Body::from_stream(stream::pending::<io::Result<Bytes>>());
    let (status, message) = refused(HERE, step(ACTION, never)).await;
    assert_eq!(
        (status, &*message),
        (408, "the body did not arrive within 30 s")
    );
    assert_eq!(begun.elapsed().as_secs(), BODY_TIME.as_secs());
}

#[tokio::test(start_paused = true)]
async fn only_so_many_steps_are_in_progress() {
    let (nothing, routes) = (RwLock::new(ServedPlugin::Nothing), StepRoutes::default());
    let client: SocketAddr = HERE.parse().unwrap();
    let mut steps: Vec<_> = (0..=STEPS)
        .map(|_| {
            let never = Body::from_stream(stream::pending::<io::Result<Bytes>>());
            Box::pin(routes.perform(&nothing, client, step(ACTION, never)))
        })
        .collect();
    let mut last = steps.pop().unwrap();
    for step in &mut steps {
        assert!(futures::poll!(step).is_pending());
    }
    let StepRefusal(status, message) = (&mut last).await.unwrap_err();
    assert_eq!(status, 503);
    assert!(message.contains("16 steps are in progress"), "{message}");
    // The end of one makes room.
    drop(steps.pop());
    let (nothing, request) = (RwLock::new(ServedPlugin::Nothing), step(EVENT, START));
    let StepRefusal(_, message) = routes.perform(&nothing, client, request).await.unwrap_err();
    assert_eq!(message, "the plugin is being built");
}

#[test]
fn an_answer_is_what_a_test_would_contain() {
    let text = |text: &str| text.to_owned();
    let minute = Duration::from_secs(60);
    for (outcome, expected) in [
        (EventOutcome::Answered, json!({})),
        (EventOutcome::Gate(GateAnswer::GoOn), json!({})),
        (
            EventOutcome::Gate(GateAnswer::Postpone(text("it runs"), minute)),
            json!({ "postpone": "it runs", "seconds": 60 }),
        ),
        (
            EventOutcome::Gate(GateAnswer::Refuse(text("it is blank"))),
            json!({ "refuse": "it is blank" }),
        ),
        (EventOutcome::Failed(text("a")), json!({ "failed": "a" })),
        (EventOutcome::Late(text("a")), json!({ "failed": "a" })),
    ] {
        assert_eq!(event_answer(outcome), expected);
    }
    let output = |output: &[u8]| ActionOutcome::Output(output.to_vec());
    for (outcome, expected) in [
        (output(b""), json!({})),
        (output(b"{\"a\":null}"), json!({ "json": { "a": null } })),
        (output(b"5v"), json!({ "text": "5v" })),
        (output(&[0xff, 0]), json!({ "base64": "/wA=" })),
        (ActionOutcome::Refused(text("a")), json!({ "refused": "a" })),
        (ActionOutcome::Failed(text("a")), json!({ "failed": "a" })),
    ] {
        let answer = action_answer(outcome);
        assert_eq!(answer, expected);
        let missed = with_missed(answer, Some(text("door")));
        assert_eq!(missed["missed"], "door");
    }
}
