use std::fs;

use plugin_manifest::Language;
use tempfile::TempDir;

use super::*;
use crate::templates;

/// A project with an existing component, and the folder of the records.
struct Builds {
    folder: TempDir,
    project: ProjectFolder,
}

/// The component that the builds make.
const WASM: &[u8] = b"\0asm\x0d\0\x01\0";

impl Builds {
    /// The project has been built.
    fn new() -> Builds {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("rails");
        templates::write(&project, "rails", Language::Python).unwrap();
        let project = ProjectFolder::open(&project).unwrap();
        let builds = Builds { folder, project };
        assert!(!builds.is_unchanged(BuildMode::IfChanged));
        builds.build(|| {});
        assert!(builds.is_unchanged(BuildMode::IfChanged));
        builds
    }

    fn records(&self) -> PathBuf {
        self.folder.path().join("builds")
    }

    /// Returns the only record.
    fn record(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.records()).unwrap();
        let record = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        record
    }

    fn load(&self, mode: BuildMode) -> LastBuild {
        LastBuild::load_from(
            Some(&self.records()),
            &self.project,
            mode,
            &Output::new(true),
        )
    }

    fn inputs(&self) -> Inputs {
        let mut inputs = Inputs::new(&self.project);
        inputs.add_folder(&self.project.path.join("src"));
        inputs
    }

    fn is_unchanged(&self, mode: BuildMode) -> bool {
        self.load(mode)
            .has_inputs(self.inputs(), &Output::new(true))
    }

    /// Builds the project; `meanwhile` happens between the beginning and the end of that.
    fn build(&self, meanwhile: impl FnOnce()) {
        let mut last = self.load(BuildMode::Always);
        assert!(!last.has_inputs(self.inputs(), &Output::new(true)));
        meanwhile();
        fs::write(self.project.component(), WASM).unwrap();
        last.remember(WASM);
    }
}

#[test]
fn a_record_that_is_not_a_whole_one_of_this_build_means_that_the_project_is_built() {
    let builds = Builds::new();
    let whole = fs::read(builds.record()).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|end| whole[..end].to_vec()).collect();
    damaged.push(b"null".to_vec());
    damaged.push(b"[[[[[[[[".to_vec());
    damaged.push(b"{\"inputs\":1,\"component\":2}".to_vec());
    damaged.push(b"{\"inputs\":\"\",\"component\":\"\"}".to_vec());
    damaged.push(text.replace("inputs", "input").into_bytes());
    damaged.push(text.replace("{", "{\"more\":1,").into_bytes());
    damaged.push(format!("{text}{text}").into_bytes());
    damaged.push(format!("{}{text}", " ".repeat(1 << 20)).into_bytes());
    damaged.push(vec![0xff; 1 << 20]);
    for record in damaged {
        fs::write(builds.record(), &record).unwrap();
        let shown = String::from_utf8_lossy(&record[..record.len().min(80)]).into_owned();
        assert!(!builds.is_unchanged(BuildMode::IfChanged), "{shown}");
    }
    // A record with another length is replaced as a whole.
    builds.build(|| {});
    assert_eq!(fs::read(builds.record()).unwrap(), whole);
    assert!(builds.is_unchanged(BuildMode::IfChanged));
    assert!(!builds.is_unchanged(BuildMode::Always));
}

#[test]
fn only_the_component_of_the_last_build_is_used_again() {
    let builds = Builds::new();
    let component = builds.project.component();
    for other in [&b""[..], &WASM[..7], b"\0asm\x0d\0\x01\x01", b"noise"] {
        fs::write(&component, other).unwrap();
        assert!(!builds.is_unchanged(BuildMode::IfChanged), "{other:?}");
    }
    fs::remove_file(&component).unwrap();
    assert!(!builds.is_unchanged(BuildMode::IfChanged));
    fs::create_dir(&component).unwrap();
    assert!(!builds.is_unchanged(BuildMode::IfChanged));
    fs::remove_dir(&component).unwrap();
    let huge = File::create(&component).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert!(!builds.is_unchanged(BuildMode::IfChanged));
    fs::write(&component, WASM).unwrap();
    assert!(builds.is_unchanged(BuildMode::IfChanged));
}

#[test]
fn a_build_during_which_a_source_is_saved_is_not_remembered() {
    let builds = Builds::new();
    let source = builds.project.path.join("src/plugin.py");
    let text = fs::read(&source).unwrap();
    let change = || fs::write(&source, "another").unwrap();
    builds.build(change);
    assert!(!builds.is_unchanged(BuildMode::IfChanged));
    // The component may be that of the other text, so it is not used for this one either.
    fs::write(builds.project.component(), b"another").unwrap();
    fs::write(&source, text).unwrap();
    assert!(!builds.is_unchanged(BuildMode::IfChanged));
}

/// A project from somebody else, with a component and every file that the tool leaves in a folder.
#[test]
fn a_copy_of_a_project_is_built_even_if_it_contains_a_component() {
    let builds = Builds::new();
    let copy = builds.folder.path().join("copy");
    fs::rename(&builds.project.path, &copy).unwrap();
    let project = ProjectFolder::open(&copy).unwrap();
    let copied = Builds { project, ..builds };
    assert_eq!(fs::read(copied.project.component()).unwrap(), WASM);
    assert!(!copied.is_unchanged(BuildMode::IfChanged));
}

#[test]
fn another_build_of_the_project_waits_until_this_one_has_ended() {
    let builds = Builds::new();
    let is_free = || {
        let file = File::open(builds.record()).unwrap();
        file.try_lock().is_ok()
    };
    let last = builds.load(BuildMode::IfChanged);
    assert!(!is_free());
    drop(last);
    assert!(is_free());
    // A build that waits then finds what the other one has made.
    let first = builds.load(BuildMode::Always);
    std::thread::scope(|threads| {
        let second = threads.spawn(|| builds.is_unchanged(BuildMode::IfChanged));
        drop(first);
        assert!(second.join().unwrap());
    });
}

#[test]
fn a_folder_that_cannot_keep_records_only_costs_a_build() {
    let builds = Builds::new();
    fs::remove_dir_all(builds.records()).unwrap();
    fs::write(builds.records(), "a file").unwrap();
    assert!(!builds.is_unchanged(BuildMode::IfChanged));
    builds.build(|| {});
    assert!(!builds.is_unchanged(BuildMode::IfChanged));
}

#[test]
fn the_oldest_records_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    for age in 0..5 {
        let file = File::create(folder.path().join(age.to_string())).unwrap();
        let modified = SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(100 - age);
        file.set_modified(modified).unwrap();
    }
    remove_oldest(folder.path(), 5).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    remove_oldest(folder.path(), 2).unwrap();
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["0", "1"]);
}
