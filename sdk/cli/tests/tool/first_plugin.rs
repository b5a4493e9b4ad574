//! A new project: what its author sees, and what a device that trusts the author's key makes of it.

use std::fs;

use tests::{Supervisor, until};

use crate::author::Author;

#[tokio::test]
async fn a_new_project_is_built_tested_signed_and_served_by_a_device_that_trusts_its_key() {
    let author = Author::new();
    author.new_project("rails");
    let built = author.run_in("rails", "build").succeeds();
    assert!(built.out.contains("rails 0.1.0"), "{}", built.out);
    assert!(built.out.contains("asks for: store"), "{}", built.out);
    let tested = author.run_in("rails", "test").succeeds();
    assert!(tested.out.contains("3 passed, 0 failed"), "{}", tested.out);
    // The version of the copy of the SDK that is in the project.
    let sdk = author.run("inspect rails/rails.wasm").succeeds();
    let expected = concat!(
        "  sdk          supervisor-sdk ",
        env!("CARGO_PKG_VERSION"),
        "\n"
    );
    assert!(sdk.out.contains(expected), "{}", sdk.out);
    author.run("keygen acme.key --no-password").succeeds();
    author
        .run("sign rails/rails.wasm --key acme.key")
        .succeeds();
    let checked = author.run("check rails/rails.wasm").succeeds();
    assert!(checked.out.contains("[plugins.rails]"), "{}", checked.out);

    // The owner of a device trusts the key.
    let public = author.read("acme.key.pub");
    let key = public.lines().nth(1).unwrap();
    let policy = format!(
        "[keys.acme]\npublic = \"{key}\"\n\n[plugins.rails]\nkeys = [\"acme\"]\nroutes = [\"/v3/rails/*\"]\ngrants = [\"store\"]\n"
    );
    author.write("policy.toml", &policy);
    fs::create_dir(author.path("plugins")).unwrap();
    let device = Supervisor::on_wasm()
        .argument("--plugin-dir")
        .argument(author.path("plugins").display().to_string())
        .argument("--policy")
        .argument(author.path("policy.toml").display().to_string())
        .start()
        .await;
    fs::copy(
        author.path("rails/rails.wasm"),
        author.path("plugins/rails.wasm"),
    )
    .unwrap();
    let text = until("the plugin to answer", || async {
        let answer = device.get("/v3/rails/Ada").await;
        match answer.status {
            200 => Ok(answer.text),
            _ => Err(device.json("/v3/plugins").await),
        }
    })
    .await;
    assert_eq!(text, "Hello, Ada! This is call 1.\n");
    let report = device.json("/v3/plugins").await;
    assert_eq!(report["plugins"][0]["signedBy"], "acme", "{report}");
    let description = &report["plugins"][0]["description"];
    assert_eq!(description, "Says hello, and counts how often");
}

#[test]
fn a_command_that_a_text_shows_quotes_a_folder_with_a_space() {
    let author = Author::new();
    let created = author.run_words(&["new", "rails", "--folder", "my plugins"]);
    let created = created.succeeds();
    assert!(
        created.out.contains("\n  cd 'my plugins'\n"),
        "{}",
        created.out
    );
    let key = "my plugins/acme.key";
    let created = author.run_words(&["keygen", key, "--no-password"]);
    let created = created.succeeds();
    let install = "supervisor plugins install PLUGIN.wasm --key 'my plugins/acme.key.pub'\n";
    assert!(created.out.ends_with(install), "{}", created.out);
    let component = tests::guest("wasi_http_guests").display().to_string();
    let folder = ["--folder", "my shop"];
    let words = [&["new", "shop", "--component", &component], &folder[..]].concat();
    let created = author.run_words(&words).succeeds();
    assert!(
        created.out.contains("\n  cd 'my shop'\n"),
        "{}",
        created.out
    );
}

#[test]
fn a_new_project_says_how_to_go_on_and_touches_nothing_that_is_there() {
    let author = Author::new();
    let created = author.run("new rails").succeeds();
    for line in [
        "cd rails",
        "supervisor-plugin run",
        "supervisor-plugin test",
    ] {
        assert!(created.out.contains(line), "{}", created.out);
    }
    let again = author.run("new rails").fails();
    assert!(
        again.err.contains("`rails` exists already"),
        "{}",
        again.err
    );
    let name = author.run("new Rails_1").fails();
    assert!(name.err.contains("lower-case letters"), "{}", name.err);
    let language = author.run("new other --lang cobol");
    assert_eq!(language.code, 2);
    assert!(language.err.contains("there is no language `cobol`"));
    assert!(!author.path("other").exists());
}

#[test]
fn a_crate_that_builds_no_component_names_the_line_that_its_cargo_toml_lacks() {
    let author = Author::new();
    author.new_project("rails");
    author.edit("rails/Cargo.toml", "crate-type = [\"cdylib\"]\n", "");
    let built = author.run_in("rails", "build").fails();
    let question = "it has no component: is `crate-type = [\"cdylib\"]` in its Cargo.toml?";
    assert!(built.err.contains(question), "{}", built.err);
}

#[test]
fn commands_outside_of_a_project_say_where_to_be() {
    let author = Author::new();
    let built = author.run("build").fails();
    assert!(
        built.err.contains("supervisor-plugin new NAME"),
        "{}",
        built.err
    );
    author.write(
        "plugin.toml",
        "name = \"rails\"\nversion = \"0.1.0\"\nroute = 1\n",
    );
    let built = author.run("build").fails();
    let expected =
        "error: plugin.toml:3:1: there is no key `route` here; the keys are `name`, `version`, ";
    assert!(built.err.starts_with(expected), "{}", built.err);
    assert_eq!(built.err.lines().count(), 1, "{}", built.err);
}
