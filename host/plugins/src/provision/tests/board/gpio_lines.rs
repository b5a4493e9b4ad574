//! GPIO lines, which plugins hold across calls.

use super::*;

#[tokio::test]
async fn a_plugin_uses_the_lines_that_the_policy_names_and_no_others() {
    let (hardware, plugin) = TestBoard::with_door();
    // An output that was never written is only read, and is not held after that.
    assert_eq!(plugin.read("relay").await, Ok(true));
    assert_eq!(hardware.gpio.consumer("RELAY"), None);
    plugin.write("relay", false).await.unwrap();
    assert_eq!(hardware.gpio.is_on("RELAY"), Some(false));
    assert_eq!(plugin.read("relay").await, Ok(false));
    assert_eq!(plugin.read("door").await, Ok(false));
    assert!(hardware.gpio.drive("DOOR", true));
    assert_eq!(plugin.read("door").await, Ok(true));
    for name in ["RELAY", "simulated", "gpiochip0", "", "relay\0", "door "] {
        let refused = plugin.read(name).await;
        assert!(
            matches!(refused, Err(GpioError::NotGranted(_))),
            "{name:?} {refused:?}"
        );
    }
    for name in ["gone", "elsewhere"] {
        let missing = plugin.read(name).await;
        assert!(
            matches!(missing, Err(GpioError::NotFound(_))),
            "{missing:?}"
        );
    }
    let wait = plugin
        .wait(&Holdings::default(), "relay", GpioEdge::Both, 0)
        .await;
    assert!(matches!(wait, Err(GpioError::Invalid(_))), "{wait:?}");
    let write = plugin.write("door", true).await;
    assert!(matches!(write, Err(GpioError::Invalid(_))), "{write:?}");
}

#[tokio::test]
async fn an_output_stays_as_it_is_until_the_policy_no_longer_gives_it() {
    let (hardware, plugin) = TestBoard::with_door();
    plugin.write("relay", true).await.unwrap();
    // Another version of the plugin has the same lines.
    let next = hardware.plugin("door", DOOR);
    hardware.serve(&[&next]);
    assert_eq!(
        hardware.gpio.consumer("RELAY").as_deref(),
        Some("plugin door")
    );
    assert_eq!(next.read("relay").await, Ok(true));
    // With another setting it is another line.
    let inverted = DOOR.replace(
        "direction = \"out\"",
        "direction = \"out\", active_low = true",
    );
    let inverted = hardware.plugin("door", &inverted);
    hardware.serve(&[&inverted]);
    hardware.until_free("RELAY").await;
    inverted.write("relay", true).await.unwrap();
    let without = hardware.plugin("door", NOTHING);
    hardware.serve(&[&without]);
    hardware.until_free("RELAY").await;
    // A call that is still under way does not request the line again.
    for plugin in [plugin, next, inverted] {
        let refused = plugin.write("relay", true).await;
        assert!(
            matches!(refused, Err(GpioError::NotGranted(_))),
            "{refused:?}"
        );
        assert_eq!(hardware.gpio.consumer("RELAY"), None);
    }
}

#[tokio::test]
async fn a_line_is_one_plugins_at_a_time() {
    let hardware = TestBoard::new();
    let (one, other) = (hardware.plugin("one", DOOR), hardware.plugin("other", DOOR));
    hardware.serve(&[&one, &other]);
    one.write("relay", true).await.unwrap();
    let busy = other.write("relay", false).await;
    let expected = "the line RELAY of `simulated` is in use by `plugin one`".to_owned();
    assert_eq!(busy, Err(GpioError::Busy(expected)));
    assert_eq!(hardware.gpio.is_on("RELAY"), Some(true));
    hardware.serve(&[&other]);
    hardware.until_free("RELAY").await;
    other.write("relay", false).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn edges_between_two_waits_of_a_call_are_not_lost() {
    let (hardware, plugin) = TestBoard::with_door();
    let call = Holdings::default();
    let wait = async |edge| plugin.wait(&call, "door", edge, 1000).await.unwrap();
    assert_eq!(wait(GpioEdge::Both).await, None);
    for on in [true, false, true] {
        assert!(hardware.gpio.drive("DOOR", on));
    }
    let first = wait(GpioEdge::Falling).await.unwrap();
    assert!(!first.is_rising);
    let second = wait(GpioEdge::Both).await.unwrap();
    assert!(second.is_rising && second.nanoseconds >= first.nanoseconds);
    assert_eq!(wait(GpioEdge::Both).await, None);
    // More than there is room for: the latest stay, and the others are counted.
    for number in 0..100 {
        assert!(hardware.gpio.drive("DOOR", number % 2 == 1));
    }
    assert_eq!(wait(GpioEdge::Both).await.unwrap().lost, 36);
    // Edges before a call do not belong to it.
    drop(call);
    hardware.until_watched("DOOR", false).await;
    let later = Holdings::default();
    let wait = plugin.wait(&later, "door", GpioEdge::Both, 1000);
    assert_eq!(wait.await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn edges_of_the_other_kind_are_passed_over_and_those_lost_with_them_count() {
    let (hardware, plugin) = TestBoard::with_door();
    let call = Holdings::default();
    let wait = async |edge| plugin.wait(&call, "door", edge, 1000).await.unwrap();
    assert_eq!(wait(GpioEdge::Both).await, None);
    for on in [true, false, true] {
        assert!(hardware.gpio.drive("DOOR", on));
    }
    for _ in 0..2 {
        assert!(wait(GpioEdge::Rising).await.unwrap().is_rising);
    }
    assert_eq!(wait(GpioEdge::Both).await, None);
    // The oldest of the 64 that there is room for is a falling one.
    for number in 0..100 {
        assert!(hardware.gpio.drive("DOOR", number % 2 == 1));
    }
    let rising = wait(GpioEdge::Rising).await.unwrap();
    assert_eq!((rising.is_rising, rising.lost), (true, 36));
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_an_edge_has_an_end() {
    let (_hardware, plugin) = TestBoard::with_door();
    let begun = tokio::time::Instant::now();
    let call = Holdings::default();
    let waited = plugin.wait(&call, "door", GpioEdge::Both, u32::MAX).await;
    assert_eq!(waited, Ok(None));
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn a_line_that_is_given_back_while_a_call_waits_for_its_turn_is_not_used() {
    let (hardware, plugin) = TestBoard::with_door();
    let grant = plugin.context.grants.gpio.line("relay").unwrap();
    let line = hardware.lines.get(&plugin.context.name, grant).unwrap();
    let turn = line.held.lock().await;
    let revoke = async {
        hardware.serve(&[]);
        drop(turn);
    };
    let (written, ()) = tokio::join!(plugin.write("relay", false), revoke);
    assert!(
        matches!(written, Err(GpioError::NotGranted(_))),
        "{written:?}"
    );
    assert_eq!(hardware.gpio.is_on("RELAY"), Some(true));
}

#[tokio::test(start_paused = true)]
async fn one_call_at_a_time_waits_for_the_edges_of_a_line() {
    let (_hardware, plugin) = TestBoard::with_door();
    let (one, other) = (Holdings::default(), Holdings::default());
    let wait = async |call: &Holdings| plugin.wait(call, "door", GpioEdge::Both, 0).await;
    assert_eq!(wait(&one).await, Ok(None));
    let busy = wait(&other).await;
    assert!(matches!(busy, Err(GpioError::Busy(_))), "{busy:?}");
    // Others can read the line, and a second wait of the same call is refused.
    assert_eq!(plugin.read("door").await, Ok(false));
    let long = plugin.wait(&one, "door", GpioEdge::Both, 60_000);
    let (long, twice) = tokio::join!(long, wait(&one));
    assert_eq!(long, Ok(None));
    assert!(matches!(twice, Err(GpioError::Busy(_))), "{twice:?}");
    drop(one);
    assert_eq!(wait(&other).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_line_is_no_longer_granted() {
    let (hardware, plugin) = TestBoard::with_door();
    let call = Holdings::default();
    let wait = plugin.wait(&call, "door", GpioEdge::Both, u32::MAX);
    let revoke = async {
        hardware.until_watched("DOOR", true).await;
        hardware.serve(&[]);
    };
    let (waited, ()) = tokio::join!(wait, revoke);
    assert!(
        matches!(waited, Err(GpioError::NotGranted(_))),
        "{waited:?}"
    );
    // Even though the call is not over.
    hardware.until_free("DOOR").await;
    let again = plugin.wait(&call, "door", GpioEdge::Both, 0).await;
    assert!(matches!(again, Err(GpioError::NotGranted(_))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn waits_for_edges_take_no_thread_and_cost_the_others_nothing() {
    let hardware = TestBoard::new();
    let lines: Vec<String> = (0..40).map(|number| format!("L{number}")).collect();
    let grants: Vec<String> = lines
        .iter()
        .map(|line| {
            hardware.gpio.add(line, false);
            format!("{{ name = \"{line}\", chip = \"simulated\", line = \"{line}\", direction = \"in\" }}")
        })
        .collect();
    let policy = format!("grants = [\"gpio\"]\ngpio = [{}]", grants.join(", "));
    let flood = hardware.plugin("flood", &policy);
    let door = hardware.plugin("door", DOOR);
    hardware.serve(&[&flood, &door]);
    let call = Holdings::default();
    let waits = lines
        .iter()
        .map(|line| flood.wait(&call, line, GpioEdge::Both, 60_000));
    let others = async {
        until("all of them to wait", async || {
            let waiting = lines
                .iter()
                .filter(|line| hardware.gpio.is_waited_for(line));
            let count = waiting.count();
            if count == lines.len() {
                Ok(())
            } else {
                Err(count)
            }
        })
        .await;
        door.write("relay", true).await.unwrap();
        assert!(hardware.gpio.drive("L7", true));
    };
    let (waited, ()) = tokio::join!(futures::future::join_all(waits), others);
    let edges = waited.iter().filter(|edge| matches!(edge, Ok(Some(_))));
    assert_eq!(edges.count(), 1, "{waited:?}");
}
