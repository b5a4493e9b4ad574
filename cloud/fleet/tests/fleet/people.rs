//! Accounts, organizations, their members and invitations, and SSH keys.

use serde_json::{Value, json};

use crate::harness::{Cloud, EMAIL, PASSWORD, Person};

const BOB: &str = "bob@shop.example";
const BOBS: &str = "a stapled battery horse";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ann@desk";

/// Another person, with their own account and organization.
fn bob(cloud: &Cloud, ann: &Person) -> Person {
    let made = ann.run_with(
        &["register", "--username", "bob", "--email", BOB, "--stdin"],
        &format!("{BOBS}\n"),
    );
    assert_eq!(made.code, 0, "{}", made.err);
    let bob = Person::new();
    bob.done(&["login", &cloud.url, "--email", BOB, "--password", BOBS]);
    bob
}

#[test]
fn accounts_are_made_by_administrators_or_by_everybody_where_registration_is_open() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let register = ["register", "--username", "bob", "--email", BOB, "--stdin"];
    let made = ann.run_with(&[&register[..], &["--json"]].concat(), BOBS);
    assert_eq!(made.code, 0, "{}", made.err);
    let made: Value = serde_json::from_str(&made.out).expect("JSON");
    assert_eq!(
        (&made["username"], &made["signed_in"]),
        (&json!("bob"), &json!(false))
    );
    assert_eq!(ann.json(&["whoami"])["email"], json!(EMAIL));
    let again = ann.run_with(&register, BOBS);
    assert_eq!(again.code, 1, "{}", again.err);
    assert!(again.err.contains("is already taken"), "{}", again.err);
    let weak = ann.run_with(
        &[
            "register",
            "--username",
            "eve",
            "--email",
            "e@shop.example",
            "--stdin",
        ],
        "short\n",
    );
    assert_eq!(weak.code, 1, "{}", weak.err);
    // A password is not an argument, and there is no terminal to prompt at.
    ann.refused(
        2,
        &["register", "--username", "eve", "--email", "e@shop.example"],
    );
    ann.refused(2, &["register", "--username", "eve", "--password", "x"]);

    let nobody = Person::new();
    let words = [
        "register",
        &cloud.url,
        "--username",
        "eve",
        "--email",
        "e@shop.example",
        "--stdin",
    ];
    let closed = nobody.run_with(&words, BOBS);
    assert_eq!(closed.code, 3, "{}", closed.err);
    assert!(
        closed.err.contains("only administrators of"),
        "{}",
        closed.err
    );

    let open = Cloud::start_open();
    let words = [
        "register",
        &open.url,
        "--username",
        "eve",
        "--email",
        "e@shop.example",
        "--stdin",
    ];
    let made = nobody.run_with(&words, BOBS);
    assert_eq!(made.code, 0, "{}", made.err);
    assert_eq!(nobody.json(&["whoami"])["username"], json!("eve"));
    assert!(!made.out.contains(BOBS) && !made.err.contains(BOBS));
}

#[test]
fn a_new_password_comes_on_standard_input_and_ends_other_sessions_alone() {
    let cloud = Cloud::start();
    let (ann, elsewhere) = (Person::signed_in(&cloud), Person::signed_in(&cloud));
    let new = "another horse battery";
    let both = format!("{PASSWORD}\n{new}\n");
    let wrong = ann.run_with(
        &["password", "--stdin"],
        &format!("wrong one here\n{new}\n"),
    );
    assert_eq!(wrong.code, 3, "{}", wrong.err);
    assert!(wrong.err.contains("nothing was changed"), "{}", wrong.err);
    let missing = ann.run_with(&["password", "--stdin"], PASSWORD);
    assert_eq!(missing.code, 2, "{}", missing.err);
    ann.refused(2, &["password"]);
    elsewhere.done(&["whoami"]);

    let key = ann.done(&["keys", "create", "ci"]);
    let program = Person::new()
        .with("FLEET_URL", &cloud.url)
        .with("FLEET_TOKEN", key.trim());
    let output = program.run_with(&["password", "--stdin"], &both);
    assert_eq!(output.code, 3, "{}", output.err);
    assert!(
        output.err.contains("keys cannot change passwords"),
        "{}",
        output.err
    );

    let done = ann.run_with(&["password", "--stdin", "--json"], &both);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(!done.out.contains(new) && !done.err.contains(new));
    ann.done(&["whoami"]);
    elsewhere.refused(3, &["whoami"]);
    program.done(&["whoami"]);
    ann.refused(3, &["login", "--email", EMAIL, "--password", PASSWORD]);

    let done = ann.run_with(
        &["password", "--stdin", "--end-keys"],
        &format!("{new}\n{PASSWORD}"),
    );
    assert_eq!(done.code, 0, "{}", done.err);
    program.refused(3, &["whoami"]);
    ann.done(&["whoami"]);
}

#[test]
fn organizations_are_made_listed_renamed_and_deleted_by_their_administrators() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let bob = bob(&cloud, &ann);
    let made = ann.json(&["organization", "create", "Acme Pumps"]);
    assert_eq!(made["handle"], json!("acme_pumps"));
    assert_eq!(made["role"], json!("administrator"));
    let message = ann.refused(
        1,
        &["organization", "create", "Other", "--handle", "acme_pumps"],
    );
    assert!(message.contains("`acme_pumps` already"), "{message}");
    let message = ann.refused(1, &["organization", "create", "Other", "--handle", "A B"]);
    assert!(message.contains("`handle` must be"), "{message}");

    let listed = ann.json(&["organizations"]);
    let handles: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["handle"].as_str())
        .collect();
    assert_eq!(handles, ["acme_pumps", "admin"]);
    assert!(ann.done(&["orgs"]).starts_with("HANDLE "));
    let fleet = ["create", "pump", "--type", "raspberrypi4-64"];
    let message = ann.refused(2, &fleet);
    assert!(message.contains("acme_pumps, admin"), "{message}");
    ann.done(&[&fleet[..], &["--organization", "Acme Pumps"]].concat());
    assert_eq!(ann.json(&["org", "show", "acme_pumps"])["fleets"], json!(1));

    // Names are untrusted text.
    ann.done(&[
        "organization",
        "rename",
        "acme_pumps",
        "Acme\u{1b}[2J\u{202e}",
    ]);
    for output in [
        ann.done(&["organizations"]),
        ann.done(&["organization", "show", "acme_pumps"]),
    ] {
        assert!(output.contains("Acme[2J"), "{output}");
        assert!(!output.contains(['\u{1b}', '\u{202e}']), "{output:?}");
    }

    // Another user's organizations are invisible.
    for words in [
        &["organization", "show", "acme_pumps"][..],
        &["organization", "rename", "acme_pumps", "Mine"],
        &["organization", "delete", "acme_pumps", "--yes"],
        &["members", "--organization", "acme_pumps"],
    ] {
        let message = bob.refused(4, words);
        assert!(
            message.contains("there is no organization `acme_pumps`"),
            "{message}"
        );
        assert!(message.contains("you belong to bob"), "{message}");
    }

    let message = ann.refused(2, &["organization", "delete", "acme_pumps"]);
    assert!(message.contains("--yes"), "{message}");
    ann.done(&["organization", "delete", "acme_pumps", "--yes"]);
    ann.refused(4, &["organization", "show", "acme_pumps"]);
}

#[test]
fn members_are_invited_accept_change_their_roles_and_leave() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let bob = bob(&cloud, &ann);
    let message = ann.refused(4, &["invitation", "create", BOB, "--role", "king"]);
    assert!(
        message.contains("it has administrator, member"),
        "{message}"
    );
    let message = ann.refused(1, &["invitation", "create", "nobody"]);
    assert!(message.contains("the e-mail address must be"), "{message}");

    let invited = ann.run(&["invitation", "create", BOB, "--message", "hi"]);
    assert!(
        invited.err.contains("the cloud sends no mail"),
        "{}",
        invited.err
    );
    let token = invited.out.trim().to_owned();
    let message = ann.refused(1, &["invitation", "create", BOB]);
    assert!(
        message.contains("is already invited to the organization admin"),
        "{message}"
    );
    let listed = ann.json(&["invitations"]);
    assert_eq!(listed[0]["email"], json!(BOB));
    assert_eq!(listed[0]["role"], json!("member"));
    assert_eq!(listed[0]["token"], json!(token));
    assert!(!ann.done(&["invitations"]).contains(&token));
    // Only Bob can accept it.
    let message = ann.refused(3, &["invitation", "accept", &token]);
    assert!(message.contains("another address"), "{message}");
    bob.refused(4, &["invitation", "accept", "../../v7/device"]);

    ann.done(&["invitation", "revoke", BOB]);
    let message = bob.refused(4, &["invitation", "accept", &token]);
    assert!(message.contains("there is no such invitation"), "{message}");
    let message = ann.refused(4, &["invitation", "revoke", BOB]);
    assert!(message.contains("is not invited"), "{message}");
    let token = ann.done(&["invitation", "create", BOB]);
    let accepted = bob.done(&["invitation", "accept", token.trim()]);
    assert!(accepted.contains("the organization admin"), "{accepted}");
    assert_eq!(ann.json(&["invitations"]), json!([]));

    let listed = ann.json(&["members"]);
    assert_eq!(listed[1]["username"], json!("bob"));
    assert_eq!(listed[1]["role"], json!("member"));
    let message = bob.refused(2, &["members"]);
    assert!(message.contains("admin, bob"), "{message}");

    // A plain member cannot administer anything.
    let of = ["--organization", "admin"];
    for words in [
        &["member", "role", "bob", "administrator"][..],
        &["member", "rm", "admin", "--yes"],
        &["invitation", "create", "eve@shop.example"],
    ] {
        let message = bob.refused(3, &[words, &of[..]].concat());
        assert!(message.contains("you may not"), "{message}");
    }
    assert_eq!(
        bob.json(&["invitations", "--organization", "admin"]),
        json!([])
    );
    let message = ann.refused(1, &["member", "role", "admin", "member"]);
    assert!(message.contains("without an administrator"), "{message}");
    let message = ann.refused(4, &["member", "role", "eve", "member"]);
    assert!(message.contains("has no member `eve`"), "{message}");
    ann.done(&["member", "role", "bob", "administrator"]);
    ann.done(&["member", "role", BOB, "member"]);
    ann.refused(2, &["member", "rm", "bob"]);
    // Members can leave on their own.
    bob.done(&["member", "rm", "bob", "--organization", "admin", "--yes"]);
    bob.refused(4, &["members", "--organization", "admin"]);

    // Fleets are shared in the same way.
    ann.fleet("pump");
    bob.refused(4, &["show", "admin/pump"]);
    let output = ann.done(&["members", "--fleet", "pump"]);
    assert_eq!(output, "");
    let token = ann.done(&[
        "invitation",
        "create",
        BOB,
        "--fleet",
        "pump",
        "--role",
        "observer",
    ]);
    assert_eq!(
        ann.json(&["invitations", "--fleet", "pump"])[0]["role"],
        json!("observer")
    );
    let accepted = bob.done(&["invitation", "accept", token.trim()]);
    assert!(accepted.contains("the fleet admin/pump"), "{accepted}");
    assert_eq!(bob.json(&["show", "pump"])["slug"], json!("admin/pump"));
    bob.refused(
        3,
        &["member", "role", "bob", "developer", "--fleet", "pump"],
    );
    ann.done(&["member", "role", "bob", "developer", "--fleet", "pump"]);
    assert_eq!(
        ann.json(&["members", "-f", "pump"])[0]["role"],
        json!("developer")
    );
    ann.done(&["member", "rm", "bob", "--fleet", "pump", "--yes"]);
    bob.refused(4, &["show", "admin/pump"]);
}

#[test]
fn ssh_keys_are_added_listed_and_removed_and_private_ones_stay_at_home() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let bob = bob(&cloud, &ann);
    let home = ann.home.path();
    std::fs::write(home.join("id.pub"), format!("{KEY}\n")).expect("a file");
    std::fs::write(
        home.join("id"),
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n",
    )
    .expect("a file");
    let message = ann.refused(2, &["ssh-key", "add", "desk", "id"]);
    assert!(
        message.contains("holds a private key, which was sent nowhere"),
        "{message}"
    );
    assert!(message.contains("ends with `.pub`"), "{message}");
    ann.refused(1, &["ssh-key", "add", "desk", "nowhere.pub"]);
    assert_eq!(ann.json(&["ssh-keys"]), json!([]));

    ann.done(&["ssh-key", "add", "desk\u{1b}[2J", "id.pub"]);
    let output = ann.run_with(&["ssh-key", "add", "again", "-"], KEY);
    assert_eq!(output.code, 1, "{}", output.err);
    assert!(
        output.err.contains("you already have that key"),
        "{}",
        output.err
    );
    let listed = ann.json(&["ssh-keys"]);
    assert_eq!(listed[0]["public_key"], json!(KEY));
    assert!(
        listed[0]["fingerprint"]
            .as_str()
            .is_some_and(|it| it.starts_with("SHA256:"))
    );
    let table = ann.done(&["ssh-keys"]);
    assert!(
        table.contains("desk[2J") && !table.contains('\u{1b}'),
        "{table:?}"
    );

    // Another user's keys are invisible.
    let id = listed[0]["id"].to_string();
    assert_eq!(bob.json(&["ssh-keys"]), json!([]));
    bob.refused(4, &["ssh-key", "rm", &id]);
    ann.done(&["ssh-key", "rm", &id]);
    let message = ann.refused(4, &["ssh-key", "rm", &id]);
    assert!(message.contains("you have no SSH key"), "{message}");
}

#[test]
fn settings_show_the_cloud_and_no_credential() {
    let cloud = Cloud::start();
    let nobody = Person::new();
    let answer = nobody.json(&["settings"]);
    assert_eq!(
        (&answer["url"], &answer["credential"]),
        (&Value::Null, &Value::Null)
    );
    let ann = Person::signed_in(&cloud);
    let answer = ann.json(&["settings"]);
    assert_eq!(answer["url"], json!(cloud.url));
    assert_eq!(answer["credential"], json!("session"));
    assert_eq!(answer["credential_from"], json!("the file"));
    let ann = ann
        .with("FLEET_TOKEN", "0123456789abcdef")
        .with("FLEET_URL", "http://127.0.0.1:1");
    let output = ann.run(&["settings"]);
    assert!(
        output.out.contains("key (from FLEET_TOKEN)"),
        "{}",
        output.out
    );
    assert!(
        output.out.contains("http://127.0.0.1:1 (from FLEET_URL)"),
        "{}",
        output.out
    );
    assert!(!output.out.contains("0123456789abcdef"), "{}", output.out);
}
