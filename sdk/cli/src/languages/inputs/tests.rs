use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use plugin_manifest::Language;
use tempfile::TempDir;

use super::*;
use crate::templates;

/// Returns a project in Python with a module and a package, and its folder.
fn project() -> (TempDir, ProjectFolder) {
    let folder = tempfile::tempdir().unwrap();
    templates::write(folder.path(), "rails", Language::Python).unwrap();
    let declared = folder.path().join("plugin.toml");
    let text = fs::read_to_string(&declared).unwrap();
    fs::write(&declared, format!("openapi = \"routes.json\"\n{text}")).unwrap();
    for (file, text) in [
        ("routes.json", "{}"),
        ("src/rails.py", "VOLTS = 5"),
        ("src/board/__init__.py", "BOARD = 1"),
        ("src/board/data.json", "{\"a\":1}"),
    ] {
        write(folder.path(), file, text);
    }
    let project = ProjectFolder::open(folder.path()).unwrap();
    (folder, project)
}

fn write(folder: &Path, file: &str, text: &str) {
    let file = folder.join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// Returns the digest of a project whose sources are in `below`.
fn digest_of(project: &ProjectFolder, below: &str) -> Result<String> {
    let project = ProjectFolder::open(&project.path).unwrap();
    let mut inputs = Inputs::new(&project);
    inputs.add_program(OsStr::new("/bin/cat"));
    inputs.add_folder(&project.path.join(below));
    inputs.digest()
}

/// Each with whether it could change the component.
#[test]
fn only_files_that_an_import_could_find_change_the_digest() {
    type Change = fn(&Path);
    let changes: [(&str, bool, Change); 22] = [
        ("nothing", false, |_| {}),
        ("another text of the same length", true, |root| {
            write(root, "src/rails.py", "VOLTS = 3");
        }),
        ("a file in a package", true, |root| {
            write(root, "src/board/data.json", "{\"a\":2}");
        }),
        ("a new module", true, |root| write(root, "src/json.py", "")),
        ("a new file in a package", true, |root| {
            write(root, "src/board/more.py", "");
        }),
        ("a new folder, which is a package too", true, |root| {
            fs::create_dir(root.join("src/json")).unwrap();
        }),
        ("a compiled module without a source", true, |root| {
            write(root, "src/json.pyc", "code");
        }),
        ("a source in the folder of compiled ones", true, |root| {
            write(root, "src/__pycache__/json.py", "");
        }),
        ("a file is removed", true, |root| {
            fs::remove_file(root.join("src/rails.py")).unwrap();
        }),
        ("a file has another name", true, |root| {
            fs::rename(root.join("src/rails.py"), root.join("src/rail.py")).unwrap();
        }),
        ("a file is in another folder", true, |root| {
            let to = root.join("src/board/rails.py");
            fs::rename(root.join("src/rails.py"), to).unwrap();
        }),
        ("the end of one file begins the next one", true, |root| {
            write(root, "src/board/__init__.py", "BOARD = ");
            write(root, "src/board/data.json", "1{\"a\":1}");
        }),
        ("plugin.toml", true, |root| {
            let text = fs::read_to_string(root.join("plugin.toml")).unwrap();
            write(root, "plugin.toml", &text.replace("0.1.0", "0.1.1"));
        }),
        ("the description of the routes", true, |root| {
            write(root, "routes.json", "{ }");
        }),
        ("a test", false, |root| write(root, "test/more.toml", "")),
        ("what a build writes", false, |root| {
            write(root, "build/component.wasm", "wasm");
        }),
        ("the same text is written again", false, |root| {
            write(root, "src/rails.py", "VOLTS = 5");
        }),
        ("what Python has compiled", false, |root| {
            write(root, "src/__pycache__/plugin.cpython-314.pyc", "code");
            write(root, "src/__pycache__/plugin.cpython-314.pyc.1234", "");
        }),
        (
            "the file of vim's that protects an edited one",
            false,
            |root| {
                write(root, "src/.plugin.py.swp", "");
            },
        ),
        (
            "the link of Emacs's that protects an edited one",
            false,
            |root| {
                symlink("ada@board.7", root.join("src/.#plugin.py")).unwrap();
            },
        ),
        ("copies of editors", false, |root| {
            write(root, "src/plugin.py~", "");
            write(root, "src/#plugin.py#", "");
        }),
        ("git's own files", false, |root| {
            write(root, "src/.git/index", "");
        }),
    ];
    for (name, expected, change) in changes {
        let (folder, project) = project();
        let before = digest_of(&project, "src").unwrap();
        change(folder.path());
        let after = digest_of(&project, "src").unwrap();
        assert_eq!(before != after, expected, "{name}");
    }
}

/// `source = "plugin.py"`: what the tool itself writes is in the folder of the sources.
#[test]
fn a_build_and_a_signature_do_not_change_the_inputs_of_a_project_with_sources_beside_its_component()
{
    let (folder, project) = project();
    let before = digest_of(&project, "").unwrap();
    for output in [
        "rails.wasm",
        "rails.wasm.new",
        "rails.wasm.minisig",
        "build/entry/routes.py",
    ] {
        write(folder.path(), output, "wasm");
    }
    assert_eq!(digest_of(&project, "").unwrap(), before);
    write(folder.path(), "rail.wasm", "wasm");
    assert_ne!(digest_of(&project, "").unwrap(), before);
}

#[test]
fn another_program_or_another_version_of_it_changes_the_digest() {
    let (folder, project) = project();
    let program = folder.path().join("compiler");
    let version = folder.path().join("version");
    let digest = |script: &str| {
        write(folder.path(), "script", script);
        // By another process: a program cannot be started while a thread of this one starts another program and so holds
        // the file open.
        let mut install = Command::new("install");
        let install = install.args(["-p", "-m", "755", "script", "compiler"]);
        assert!(
            install
                .current_dir(folder.path())
                .status()
                .unwrap()
                .success()
        );
        let mut inputs = Inputs::new(&project);
        inputs.add_program(program.as_os_str());
        inputs.digest()
    };
    let script = format!("#!/bin/sh\ncat {}\n", version.display());
    let failed = digest(&script).err().unwrap().to_string();
    assert!(failed.contains("`compiler` failed"), "{failed}");
    let identity = || {
        let mut inputs = Inputs::new(&project);
        inputs.add_program(program.as_os_str());
        inputs.digest().unwrap()
    };
    fs::write(&version, "1.0.0").unwrap();
    let before = identity();
    assert_eq!(identity(), before);
    // The script is the same, as those of Python packages are.
    fs::write(&version, "1.0.1").unwrap();
    assert_ne!(identity(), before);
    fs::write(&version, "1.0.0").unwrap();
    assert_eq!(identity(), before);
    assert_ne!(digest(&format!("{script}#")).unwrap(), before);
}

#[test]
fn unknown_and_too_large_inputs_have_no_digest() {
    type Change = fn(&Path);
    let changes: [(&str, &str, Change); 8] = [
        ("a link out of the project", "is a link", |root| {
            symlink("/etc/hostname", root.join("src/name")).unwrap();
        }),
        ("a link to a folder around it", "is a link", |root| {
            symlink("..", root.join("src/around")).unwrap();
        }),
        ("a link to nothing", "is a link", |root| {
            symlink("nothing", root.join("src/name")).unwrap();
        }),
        ("a pipe, which would never end", "special file", |root| {
            let made = Command::new("mkfifo").arg(root.join("src/pipe")).status();
            assert!(made.unwrap().success());
        }),
        ("a huge file", "more than 512 MiB", |root| {
            let file = File::create(root.join("src/huge.bin")).unwrap();
            file.set_len(1 << 40).unwrap();
        }),
        ("many files", "more than 20000 files", |root| {
            fs::create_dir(root.join("src/many")).unwrap();
            for number in 0..=MOST_ENTRIES {
                File::create(root.join(format!("src/many/{number}"))).unwrap();
            }
        }),
        ("no sources", "cannot read", |root| {
            fs::remove_dir_all(root.join("src")).unwrap();
        }),
        ("a pipe as the description", "not a regular file", |root| {
            fs::remove_file(root.join("routes.json")).unwrap();
            symlink("/dev/null", root.join("routes.json")).unwrap();
        }),
    ];
    for (name, expected, change) in changes {
        let (folder, project) = project();
        change(folder.path());
        let error = digest_of(&project, "src").err().unwrap().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

/// All of them together, not each.
#[test]
fn several_large_files_are_too_large() {
    let (folder, project) = project();
    for name in ["a", "b", "c"] {
        let file = File::create(folder.path().join("src").join(name)).unwrap();
        file.set_len(MOST_BYTES / 4 * 3).unwrap();
    }
    // The first one is read, and that takes a moment.
    let error = digest_of(&project, "src").err().unwrap().to_string();
    assert!(error.contains("more than 512 MiB"), "{error}");
}
