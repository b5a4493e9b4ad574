//! `completions`: the scripts, run by the shells that they are for.

use std::io::{ErrorKind, Write as _};
use std::process::{Command, Stdio};

use crate::author::Author;

/// Returns the output of a shell that reads its completion script from standard input; `None` if it is not installed.
fn completed(shell: &str, arguments: &[&str]) -> Option<String> {
    let author = Author::new();
    let script = author.run(&format!("completions {shell}")).succeeds().out;
    let begun = Command::new(shell)
        .args(arguments)
        .env("HOME", author.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut running = match begun {
        Ok(running) => running,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => panic!("{shell}: {error}"),
    };
    let mut input = running.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    let done = running.wait_with_output().unwrap();
    Some(String::from_utf8(done.stdout).unwrap())
}

#[test]
fn shells_complete_commands() {
    // bash exists on every test machine.
    let bash = "source /dev/stdin; COMP_WORDS=(supervisor-plugin comp); COMP_CWORD=1; \
                _supervisor__plugin supervisor-plugin comp supervisor-plugin; echo ${COMPREPLY[@]}; \
                complete -p supervisor-plugin";
    let shown = completed("bash", &["-c", bash]).unwrap();
    let (command, function) = shown.split_once('\n').unwrap();
    assert_eq!(command, "completions");
    assert!(
        function.ends_with(" -F _supervisor__plugin supervisor-plugin\n"),
        "{function}"
    );
    // Makes zsh print what it would show.
    let zsh = "autoload -Uz compinit; compinit -D -u; source /dev/stdin; print -l $_comps[supervisor-plugin]; \
               _describe() { print -l ${(P)4} }; _supervisor-plugin_commands";
    if let Some(shown) = completed("zsh", &["-f", "-c", zsh]) {
        assert!(shown.starts_with("_supervisor-plugin\n"), "{shown}");
        assert!(
            shown.contains("\nnew:Create a plugin in a new folder\n"),
            "{shown}"
        );
    }
    let fish = "source -; complete -C 'supervisor-plugin comp'";
    if let Some(shown) = completed("fish", &["-N", "-c", fish]) {
        assert!(shown.starts_with("completions\t"), "{shown}");
    }
    let refused = Author::new().run("completions cmd");
    assert_eq!(refused.code, 2, "{}", refused.err);
}

/// `harness` is for `supervisor-testing`, and not for people.
#[test]
fn scripts_do_not_offer_the_command_that_the_help_hides() {
    let author = Author::new();
    assert!(!author.run("--help").succeeds().out.contains("harness"));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = author.run(&format!("completions {shell}")).succeeds().out;
        for word in ["uninstall", "json", "version"] {
            assert!(script.contains(word), "{shell}: {word}: {script}");
        }
        assert!(!script.contains("harness"), "{shell}: {script}");
    }
}

/// `supervisor-plugin completions bash | head -1`
#[test]
fn a_reader_of_a_script_may_stop_early() {
    let author = Author::new();
    let (_, writer) = std::io::pipe().unwrap();
    let mut command = Command::new(crate::author::TOOL);
    let done = command
        .args(["completions", "bash"])
        .current_dir(author.path(""))
        .stdout(writer)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    assert!(done.stderr.is_empty(), "{done:?}");
}
