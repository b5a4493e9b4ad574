use engine::LogsFrom;
use futures::StreamExt;
use tokio::time::timeout;

use crate::rig::{DEADLINE, rig, target};

fn now_ms() -> i64 {
    device_types::Moment::now().0
}

#[tokio::test(start_paused = true)]
async fn readers_see_what_services_print_and_what_the_supervisor_does() {
    let rig = rig();
    let mut first = rig.reconciler.logs();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.eventually("read", || rig.engine.readers() == 1).await;
    let mut second = rig.reconciler.logs();
    rig.engine.print("web", "hello");

    let mut system = Vec::new();
    loop {
        let line = first.next().await.unwrap();
        if let (Some(service), Some(id)) = (&line.service_name, line.service_id) {
            assert_eq!(
                (service.as_str(), id.0, line.message.as_str()),
                ("web", 1, "hello")
            );
            break;
        }
        system.push(line.message.clone());
    }
    for line in [
        "Downloading image 'web:1'",
        "Downloaded image 'web:1'",
        "Installing service 'web web:1'",
        "Starting service 'web web:1'",
        "Started service 'web web:1'",
    ] {
        assert!(
            system.iter().any(|it| it == line),
            "{line} is not in {system:?}"
        );
    }
    // The second subscribed later, and receives only what came after that.
    assert_eq!(second.next().await.unwrap().message, "hello");
}

/// An engine needs a while to open a log, and services do not wait for it.
#[tokio::test(start_paused = true)]
async fn a_reader_receives_what_is_printed_before_the_engine_has_opened_the_log() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.engine.print_at("web", "earlier", 1);
    let mut reader = rig.reconciler.logs();
    let subscribed_by = now_ms();
    // Nothing has been awaited since, so the log is not open yet, and it is opened in a later millisecond.
    assert_eq!(rig.engine.readers(), 0);
    rig.engine.print_at("web", "at once", subscribed_by);
    while now_ms() <= subscribed_by {
        std::hint::spin_loop();
    }

    let line = timeout(DEADLINE, reader.next()).await.unwrap().unwrap();
    assert_eq!(line.message, "at once");
    rig.engine.print("web", "later");
    let line = timeout(DEADLINE, reader.next()).await.unwrap().unwrap();
    assert_eq!(line.message, "later");
    let [LogsFrom::Since(since)] = rig.engine.log_starts()[..] else {
        panic!("{:?}", rig.engine.log_starts())
    };
    assert!(since <= subscribed_by);
}

/// The time of the subscription is that of the first reader.
#[tokio::test(start_paused = true)]
async fn a_second_reader_does_not_cost_the_first_one_a_line() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    let mut first = rig.reconciler.logs();
    let subscribed_by = now_ms();
    rig.engine.print_at("web", "at once", subscribed_by);
    while now_ms() <= subscribed_by {
        std::hint::spin_loop();
    }
    let _second = rig.reconciler.logs();
    let line = timeout(DEADLINE, first.next()).await.unwrap().unwrap();
    assert_eq!(line.message, "at once");
}

#[tokio::test(start_paused = true)]
async fn output_is_read_only_while_somebody_listens() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    assert_eq!(rig.engine.readers(), 0);
    let reader = rig.reconciler.logs();
    rig.eventually("read", || rig.engine.readers() == 1).await;
    drop(reader);
    rig.eventually("left", || rig.engine.readers() == 0).await;
    let _reader = rig.reconciler.logs();
    rig.eventually("read again", || rig.engine.readers() == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_told_what_it_lost_and_holds_up_nobody() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    let mut slow = rig.reconciler.logs();
    let mut quick = rig.reconciler.logs();
    rig.eventually("read", || rig.engine.readers() == 1).await;
    let lines = 1500;
    for number in 0..lines {
        rig.engine.print("web", &number.to_string());
        assert_eq!(quick.next().await.unwrap().message, number.to_string());
    }
    let first = slow.next().await.unwrap();
    assert!(first.service_name.is_none());
    let lost: usize = first.message.split(' ').next().unwrap().parse().unwrap();
    assert!(lost > 0);
    let next = slow.next().await.unwrap();
    assert_eq!(next.message, lost.to_string());
}

/// A new container prints at once, while its engine may be too busy to open its log.
#[tokio::test(start_paused = true)]
async fn a_log_that_could_not_be_opened_is_read_from_its_first_line_later() {
    let rig = rig();
    rig.engine.fail("logs", 2);
    let _reader = rig.reconciler.logs();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.eventually("read", || rig.engine.readers() == 1).await;
    assert_eq!(rig.engine.log_starts(), [LogsFrom::Start; 3]);
}
