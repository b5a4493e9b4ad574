//! Random updates of a device on an engine in memory, each killed at random steps: whatever the update and whenever the
//! kill, the result is that of an undisturbed update, with nothing doubled, lost or left locked.
//!
//! A kill is a copy of everything that outlives a process, made between two effects: the objects on the engine, the
//! files of the store, the folders of locks. The next supervisor is started on the copy. Each call that changes
//! something on the engine counts as a step, before and after it takes effect, and so does each write to the store,
//! before and after.
//!
//! `RANDOM_KILLS=100000` runs that number of updates instead of a thousand, `RANDOM_KILLS_SEED=17` repeats one.

mod device;
mod draw;
mod life;
mod picture;
mod story;
mod switch;

use std::collections::BTreeSet;

use device::Image;
use draw::Draw;
use life::{Client, LifeOutcome, live};
use story::Story;

/// The number of updates, unless `RANDOM_KILLS` sets another.
const UPDATES: u64 = 1_000;
/// The number of tests that share the updates and run in parallel.
const SHARES: u64 = 4;
/// The maximum number of successive kills of one update.
const MOST_KILLS: u64 = 3;

#[test]
fn random_updates_survive_kills_at_random_steps_1() {
    updates(0);
}

#[test]
fn random_updates_survive_kills_at_random_steps_2() {
    updates(1);
}

#[test]
fn random_updates_survive_kills_at_random_steps_3() {
    updates(2);
}

#[test]
fn random_updates_survive_kills_at_random_steps_4() {
    updates(3);
}

fn updates(share: u64) {
    let number = |variable| Some(std::env::var(variable).ok()?.parse::<u64>().unwrap());
    let empty = Image::empty();
    if let Some(seed) = number("RANDOM_KILLS_SEED") {
        if share == 0 {
            update(seed, &empty);
        }
        return;
    }
    let count = number("RANDOM_KILLS").unwrap_or(UPDATES);
    let (mut killed, mut all) = (0, 0);
    for seed in (0..count).filter(|seed| seed % SHARES == share) {
        all += 1;
        killed += u64::from(update(seed, &empty));
    }
    // Otherwise the rest proves nothing.
    assert!(killed * 10 >= all * 8, "{killed} of {all} were killed");
}

/// Reports which update it was if a test fails.
struct FailureNote<'a>(u64, &'a Story, &'a [usize]);

impl Drop for FailureNote<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let FailureNote(seed, story, kills) = self;
            println!("RANDOM_KILLS_SEED={seed} repeats this, killed at {kills:?} of {story:#?}");
        }
    }
}

/// Runs one update of a device that was `empty` first; returns whether it was killed.
fn update(seed: u64, empty: &Image) -> bool {
    let mut draw = Draw::new(seed);
    let story = Story::draw(&mut draw);
    let failing = FailureNote(seed, &story, &[]);
    let ready = story.begin(empty);
    let before = ready.holdings();

    // Undisturbed: this is the expected result.
    let mut client = Client::default();
    let (expected, steps) = match live(ready.copy(), None, &story, &mut client) {
        LifeOutcome::Settled(picture, steps) => (picture, steps),
        LifeOutcome::Killed(_) => unreachable!("nobody killed it"),
    };
    expected.check(&story);
    drop(failing);

    let kills: Vec<usize> = (0..1 + draw.below(MOST_KILLS))
        .map(|_| draw.below(steps.max(1) as u64) as usize)
        .collect();
    let _failing = FailureNote(seed, &story, &kills);
    let mut image = ready;
    let mut client = Client::default();
    let mut left = kills.iter().copied();
    let mut killed = false;
    let found = loop {
        match live(image, left.next(), &story, &mut client) {
            LifeOutcome::Killed(rest) => {
                killed = true;
                image = rest;
            }
            LifeOutcome::Settled(picture, _) => break picture,
        }
    };
    found.check(&story);
    let differences = found.state.compare(&expected.state, &story);
    assert_eq!(differences, [""; 0], "+ too much, - missing");
    // No kill may touch what the update leaves alone.
    let known: BTreeSet<String> = before.containers.keys().cloned().collect();
    let disturbed: Vec<&String> = found
        .disturbed
        .difference(&expected.disturbed)
        .filter(|id| known.contains(*id))
        .collect();
    assert!(disturbed.is_empty(), "stopped for no reason: {disturbed:?}");
    for (volume, made) in &before.volumes {
        if expected.volumes.get(volume) == Some(made) {
            let found = found.volumes.get(volume);
            assert_eq!(found, Some(made), "data of `{volume}` is lost");
        }
    }
    client.check(&story, &before, &found);
    killed
}
