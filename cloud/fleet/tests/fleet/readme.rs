//! The picture of `fleet` in README.md: the output at a terminal. `UPDATE_DOCS=1` regenerates it.

use std::path::Path;

use crate::harness::{Api, Cloud, Person};

const PICTURE: &str = "../../docs/pictures/fleet.svg";

#[test]
fn the_readme_shows_a_fleet_as_the_command_line_does() {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("displays");
    for (name, uuid) in [
        ("entrance", "91c0a4be7d5f4e6fa2b1d8c37e6f0a15"),
        ("hall-left", "3fd27be01c9a4d58b6e4f7a9025c8d31"),
        ("hall-right", "c85e1f9a4b7d4c02913fa6d0be28c749"),
        ("platform-1", "07b9d4e2f5a34c1d8e6f92b3c4a5d6e8"),
    ] {
        api.device(fleet, name, uuid);
    }
    api.release(fleet, &"5f".repeat(20), "2.0.0");
    let mut terminal = String::new();
    for command in [
        &["fleets"][..],
        &["devices", "--fleet", "displays"],
        &["pin", "entrance", "2.0.0"],
    ] {
        terminal += &format!("\u{1b}[1m$ fleet {}\u{1b}[0m\n", command.join(" "));
        terminal += &ann.done(command);
    }
    let picture = anstyle_svg::Term::new().render_svg(&terminal);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURE);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &picture).expect("a picture");
    }
    let kept = std::fs::read_to_string(&file).expect("UPDATE_DOCS=1 makes it");
    assert_eq!(kept, picture, "UPDATE_DOCS=1 recreates it");
}
