//! The cache with the real compiler: `SUPERVISOR_DIST` names the layout folder that contains it; without it, an
//! earlier build is looked for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use compiled_code::{Cache, CheckError, CompileError, Limits, Profile, Source};

/// How long anything may take.
const DEADLINE: Duration = Duration::from_secs(240);

fn compiler() -> PathBuf {
    if let Some(dist) = std::env::var_os("SUPERVISOR_DIST") {
        return Path::new(&dist).join("bin/supervisor-compile");
    }
    let this = std::env::current_exe().unwrap();
    this.ancestors()
        .flat_map(|folder| {
            ["dist/bin", "compiler", "release"]
                .map(|sub| folder.join(sub).join("supervisor-compile"))
        })
        .find(|path| path.is_file())
        .expect("no compiler: run `cargo xtask build`, or set SUPERVISOR_DIST")
}

struct Fixture {
    folder: tempfile::TempDir,
    cache: Cache,
}

fn cache_with(limits: Limits) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("compiled"), compiler(), limits).unwrap();
    Fixture { folder, cache }
}

impl Fixture {
    async fn compiled(&self, wasm: &[u8]) -> Result<PathBuf, CompileError> {
        compiled(&self.cache, wasm, Profile::Plugin).await
    }

    /// Lists the compiled files, and other files except for the key and the records of failures.
    fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.folder.path().join("compiled"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".failed") && name != "key")
            .collect();
        names.sort();
        names
    }
}

async fn compiled(cache: &Cache, wasm: &[u8], profile: Profile) -> Result<PathBuf, CompileError> {
    let source = Source::new("some.wasm", wasm);
    cache.compile_file(&source, profile).await
}

/// Returns a component that differs from those with other numbers.
fn component(number: u32) -> Vec<u8> {
    let text = format!(
        "(component (core module $m (func (export \"f\") (result i32) i32.const {number}))
           (core instance $i (instantiate $m))
           (func (export \"f\") (result s32) (canon lift (core func $i \"f\"))))"
    );
    wat::parse_str(text).unwrap()
}

#[tokio::test]
async fn a_component_is_compiled_once_and_found_again() {
    let fixture = cache_with(Limits::default());
    let first = fixture.compiled(&component(1)).await.unwrap();
    let made = fs::metadata(&first).unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o600);
    let parent = fs::metadata(first.parent().unwrap()).unwrap();
    assert_eq!(parent.permissions().mode() & 0o777, 0o700);

    let second = fixture.compiled(&component(1)).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(made.ino(), fs::metadata(&second).unwrap().ino());

    let another = fixture.compiled(&component(2)).await.unwrap();
    assert_ne!(first, another);
    assert_eq!(fixture.files().len(), 2);
}

#[tokio::test]
async fn custom_sections_at_the_end_are_not_compiled() {
    let fixture = cache_with(Limits::default());
    let bare = fixture.compiled(&component(1)).await.unwrap();
    // An empty section `note`.
    let noted = [&component(1)[..], &[0, 5, 4], b"note"].concat();
    assert_eq!(fixture.compiled(&noted).await.unwrap(), bare);
    // In front of the code they may be part of it, as names are.
    let noted = [&noted[..8], &[0, 5, 4], b"note", &noted[8..]].concat();
    assert_ne!(fixture.compiled(&noted).await.unwrap(), bare);
}

#[tokio::test]
async fn the_two_profiles_have_files_of_their_own() {
    let fixture = cache_with(Limits::default());
    let wasm = component(1);
    let one = fixture.compiled(&wasm).await.unwrap();
    let two = compiled(&fixture.cache, &wasm, Profile::Service);
    let two = two.await.unwrap();
    assert_ne!(one, two);
    assert_eq!(fixture.files().len(), 2);
}

#[tokio::test]
async fn many_who_ask_at_once_share_one_compilation() {
    let folder = tempfile::tempdir().unwrap();
    // A compiler that writes a line each time it runs.
    let (runs, script) = (folder.path().join("runs"), folder.path().join("compiler"));
    let text = format!(
        "#!/bin/sh\necho x >> {}\nexec {} \"$@\"\n",
        runs.display(),
        compiler().display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let cache = Cache::new(folder.path().join("compiled"), &script, Limits::default()).unwrap();
    let wasm = component(1);
    let requests = (0..20).map(|_| compiled(&cache, &wasm, Profile::Plugin));
    for answer in futures::future::join_all(requests).await {
        answer.unwrap();
    }
    assert_eq!(fs::read_to_string(&runs).unwrap(), "x\n");
}

/// A compiler for the test: a script.
struct Script {
    folder: tempfile::TempDir,
}

impl Script {
    /// Creates one that writes a line to `runs` each time, and then does `then`.
    fn new(then: &str) -> Script {
        let folder = tempfile::tempdir().unwrap();
        let (runs, path) = (folder.path().join("runs"), folder.path().join("compiler"));
        let text = format!("#!/bin/sh\necho x >> {}\n{then}\n", runs.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Script { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("compiler")
    }

    fn runs(&self) -> usize {
        let lines = fs::read_to_string(self.folder.path().join("runs"));
        lines.map_or(0, |lines| lines.lines().count())
    }

    /// Returns the cache of a supervisor that has just been started.
    fn cache(&self, limits: Limits) -> Cache {
        Cache::new(self.folder.path().join("compiled"), self.path(), limits).unwrap()
    }

    fn records(&self) -> Vec<PathBuf> {
        let listing = fs::read_dir(self.folder.path().join("compiled")).unwrap();
        let paths = listing.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|suffix| suffix == "failed"))
            .collect()
    }
}

#[tokio::test]
async fn a_failed_compilation_is_not_repeated_at_every_start() {
    let script = Script::new("echo too strange >&2; exit 1");
    let wasm = component(1);
    let ask = async |limits: &Limits, edition: &str| {
        let source = Source::new("some.wasm", &wasm).edition(edition.to_owned());
        let cache = script.cache(limits.clone());
        let compiled = cache.compile_file(&source, Profile::Plugin);
        compiled.await.unwrap_err().to_string()
    };
    let (limits, reason) = (
        Limits::default(),
        "the compiler refuses `some.wasm`: too strange",
    );
    assert_eq!(ask(&limits, "").await, reason);
    let again = format!("{reason} (an earlier attempt failed, and the next one is due in 23 h)");
    assert_eq!(ask(&limits, "").await, again);
    assert_eq!(script.runs(), 1);

    // The file was touched, the limits differ, the compiler is another: each is tried once.
    let more = Limits {
        memory: limits.memory + 1,
        ..limits.clone()
    };
    for (limits, edition) in [(&limits, "touched"), (&more, "touched")] {
        let before = script.runs();
        assert_eq!(ask(limits, edition).await, reason);
        assert_eq!(ask(limits, edition).await, again);
        assert_eq!(script.runs(), before + 1);
    }
    let compiler = fs::read(script.path()).unwrap();
    fs::write(script.path(), [compiler.as_slice(), b"#\n"].concat()).unwrap();
    assert_eq!(ask(&more, "touched").await, reason);
    assert_eq!(script.runs(), 4);

    // A day has passed.
    let records = script.records();
    assert_eq!(records.len(), 1, "{records:?}");
    let yesterday = std::time::SystemTime::now() - Duration::from_secs(25 * 3600);
    let record = fs::File::options().write(true).open(&records[0]).unwrap();
    record.set_modified(yesterday).unwrap();
    assert_eq!(ask(&more, "touched").await, reason);
    // A board whose clock has not been set yet.
    let tomorrow = std::time::SystemTime::now() + Duration::from_secs(25 * 3600);
    let record = fs::File::options().write(true).open(&records[0]).unwrap();
    record.set_modified(tomorrow).unwrap();
    let soon = format!("{reason} (an earlier attempt failed, and the next one is due in 24 h)");
    assert_eq!(ask(&more, "touched").await, soon);
    assert_eq!(script.runs(), 5);
}

#[tokio::test]
async fn where_the_board_had_no_memory_it_is_tried_again_sooner_and_without_a_compiler_at_once() {
    let script = Script::new("kill -9 $$");
    let wasm = component(1);
    let ask = async || {
        let cache = script.cache(Limits::default());
        compiled(&cache, &wasm, Profile::Plugin).await.unwrap_err()
    };
    let error = ask().await;
    assert!(
        matches!(error, CompileError::Killed { signal: 9, .. }),
        "{error}"
    );
    let error = ask().await.to_string();
    assert!(error.ends_with("the next one is due in 59 min)"), "{error}");

    fs::remove_file(script.path()).unwrap();
    for _ in 0..2 {
        let error = ask().await;
        assert!(matches!(error, CompileError::NoCompiler { .. }), "{error}");
    }
}

#[tokio::test]
async fn plugins_that_compile_for_ever_hold_up_no_service_and_the_other_way_round() {
    let script = Script::new(&format!(
        "test -e {{}}/$2 && exec sleep 600\nexec {} \"$@\"",
        compiler().display()
    ));
    let text = fs::read_to_string(script.path()).unwrap();
    let text = text.replace("{}", &script.folder.path().display().to_string());
    fs::write(script.path(), text).unwrap();
    for (stuck, free) in [
        (Profile::Plugin, Profile::Service),
        (Profile::Service, Profile::Plugin),
    ] {
        let flag = script.folder.path().join(stuck.to_string());
        fs::write(&flag, "").unwrap();
        let cache = script.cache(Limits::for_board(512 << 20));
        let runs = script.runs();
        let hanging: Vec<_> = (0..3)
            .map(|number| {
                let cache = cache.clone();
                tokio::spawn(async move { compiled(&cache, &component(number), stuck).await })
            })
            .collect();
        while script.runs() == runs {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        compiled(&cache, &component(9), free).await.unwrap();
        for task in hanging {
            task.abort();
            assert!(task.await.is_err_and(|error| error.is_cancelled()));
        }
        fs::remove_file(flag).unwrap();
    }
}

#[test]
fn a_child_has_half_of_a_boards_memory_at_most() {
    for (board, memory, at_once) in [
        (0, 256, 1),
        (480, 256, 1),
        (900, 450, 1),
        (1_800, 900, 2),
        (8_000, 1_024, 2),
    ] {
        let limits = Limits::for_board(board << 20);
        assert_eq!(
            (limits.memory >> 20, limits.at_once),
            (memory, at_once),
            "{board}"
        );
    }
}

#[tokio::test]
async fn a_damaged_file_is_compiled_again() {
    let fixture = cache_with(Limits::default());
    let path = fixture.compiled(&component(1)).await.unwrap();
    let sound = fs::read(&path).unwrap();
    fs::write(&path, b"not native code").unwrap();
    let again = fixture.compiled(&component(1)).await.unwrap();
    assert_eq!(path, again);
    assert_eq!(fs::read(&again).unwrap(), sound);
}

#[tokio::test]
async fn a_flipped_bit_in_compiled_code_is_found_before_it_is_run() {
    let fixture = cache_with(Limits::default());
    let path = fixture.compiled(&component(1)).await.unwrap();
    let sound = fs::read(&path).unwrap();
    // The header, the code, the sections after it, the last byte.
    let places = [0, 64, sound.len() / 4, sound.len() / 2, sound.len() - 1];
    for place in places.into_iter().chain((4096..sound.len()).step_by(4096)) {
        let mut damaged = sound.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let again = fixture.compiled(&component(1)).await.unwrap();
        assert_eq!(fs::read(&again).unwrap(), sound, "byte {place}");
        assert_eq!(fixture.files().len(), 1, "byte {place}");
    }
    for damaged in [
        &sound[..sound.len() - 1],
        &[],
        &[sound.as_slice(), &[0]].concat(),
    ] {
        fs::write(&path, damaged).unwrap();
        let again = fixture.compiled(&component(1)).await.unwrap();
        assert_eq!(fs::read(&again).unwrap(), sound);
    }
}

#[tokio::test]
async fn a_file_under_another_components_name_is_not_run() {
    let fixture = cache_with(Limits::default());
    let one = fixture.compiled(&component(1)).await.unwrap();
    let two = fixture.compiled(&component(2)).await.unwrap();
    let (first, second) = (fs::read(&one).unwrap(), fs::read(&two).unwrap());
    assert_ne!(first, second);
    // Copied over it, and under a name that combines both.
    fs::write(&one, &second).unwrap();
    let again = fixture.compiled(&component(1)).await.unwrap();
    assert_eq!(fs::read(again).unwrap(), first);

    fs::remove_file(&one).unwrap();
    let (of_one, of_two) = (name(&one), name(&two));
    let (stem, _) = of_one.rsplit_once('-').unwrap();
    let (_, tag) = of_two.rsplit_once('-').unwrap();
    fs::copy(&two, one.with_file_name(format!("{stem}-{tag}"))).unwrap();
    let again = fixture.compiled(&component(1)).await.unwrap();
    assert_eq!(fs::read(again).unwrap(), first);
    assert_eq!(fixture.files().len(), 2);
}

/// Writes a file with the given content, named with a digest that anybody can compute: what a forger could do who
/// can write to the folder but cannot read the key.
fn forged(sound: &Path, content: &[u8]) -> PathBuf {
    use sha2::{Digest as _, Sha256};
    let of_sound = name(sound);
    let (stem, _) = of_sound.rsplit_once('-').unwrap();
    let mut digest = Sha256::new();
    digest.update(stem.as_bytes());
    digest.update([0]);
    digest.update(content);
    let forged = sound.with_file_name(format!("{stem}-{}.cwasm", hex::encode(digest.finalize())));
    fs::write(&forged, content).unwrap();
    forged
}

#[tokio::test]
async fn compiled_code_that_this_device_did_not_write_is_not_run() {
    let fixture = cache_with(Limits::default());
    let one = fixture.compiled(&component(1)).await.unwrap();
    let first = fs::read(&one).unwrap();
    // Another device's compiled code of the same component, though it is identical to the last byte.
    let elsewhere = cache_with(Limits::default());
    let other = elsewhere.compiled(&component(1)).await.unwrap();
    assert_eq!(fs::read(&other).unwrap(), first);
    assert_ne!(name(&other), name(&one), "each has a key of its own");
    fs::remove_file(&one).unwrap();
    let brought = one.with_file_name(name(&other));
    fs::copy(&other, &brought).unwrap();
    let refused = compiled_code::check(&brought);
    assert!(matches!(refused, Err(CheckError::Unsound { .. })));
    assert_eq!(fixture.compiled(&component(1)).await.unwrap(), one);
    assert!(!brought.exists(), "it is removed");

    // Another component's code, with a digest without the key.
    let two = elsewhere.compiled(&component(2)).await.unwrap();
    fs::remove_file(&one).unwrap();
    let forged = forged(&one, &fs::read(&two).unwrap());
    let refused = compiled_code::check(&forged);
    assert!(matches!(refused, Err(CheckError::Unsound { .. })));
    assert_eq!(fixture.compiled(&component(1)).await.unwrap(), one);
    assert_eq!(fs::read(&one).unwrap(), first);
    assert_eq!(fixture.files().len(), 1);
}

#[tokio::test]
async fn the_key_of_compiled_code_is_its_users_alone_and_lasts() {
    let fixture = cache_with(Limits::default());
    let folder = fixture.folder.path().join("compiled");
    let key = folder.join("key");
    let one = fixture.compiled(&component(1)).await.unwrap();
    let about = fs::metadata(&key).unwrap();
    assert_eq!(
        (about.len(), about.permissions().mode() & 0o777),
        (64, 0o600)
    );
    let again = || Cache::new(&folder, compiler(), Limits::default()).unwrap();
    let compiled = async |cache: Cache| {
        let wasm = component(1);
        compiled(&cache, &wasm, Profile::Plugin).await.unwrap()
    };
    let inode = fs::metadata(&one).unwrap().ino();
    assert_eq!(compiled(again()).await, one);
    assert_eq!(
        fs::metadata(&one).unwrap().ino(),
        inode,
        "it is not compiled again"
    );

    // A key that others could have read or written no longer counts.
    let bytes = fs::read(&key).unwrap();
    type Harm = fn(&Path, &[u8]);
    let harms: [Harm; 4] = [
        |key, _| fs::set_permissions(key, fs::Permissions::from_mode(0o640)).unwrap(),
        |key, bytes| fs::write(key, &bytes[1..]).unwrap(),
        |key, _| fs::remove_file(key).unwrap(),
        |key, bytes| {
            let elsewhere = key.with_file_name("elsewhere");
            fs::write(&elsewhere, bytes).unwrap();
            fs::remove_file(key).unwrap();
            std::os::unix::fs::symlink(&elsewhere, key).unwrap();
        },
    ];
    for (number, harm) in harms.into_iter().enumerate() {
        let before = fs::read(&key).unwrap();
        harm(&key, &before);
        compiled(again()).await;
        let about = fs::symlink_metadata(&key).unwrap();
        assert!(about.is_file(), "{number}");
        assert_eq!(about.permissions().mode() & 0o777, 0o600, "{number}");
        assert_ne!(fs::read(&key).unwrap(), before, "{number}");
    }
    assert_ne!(fs::read(&key).unwrap(), bytes);
}

#[test]
fn a_folder_below_one_that_others_can_write_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let above = folder.path().join("above");
    let state = above.join("state/compiled");
    let open = || Cache::new(&state, compiler(), Limits::default()).map(drop);
    let set = |mode| fs::set_permissions(&above, fs::Permissions::from_mode(mode)).unwrap();
    open().unwrap();
    set(0o777);
    let error = open().unwrap_err().to_string();
    let message = format!("is in `{}`, which others can change", above.display());
    assert!(error.contains(&message), "{error}");
    // As in `/tmp`: nobody can rename another user's files.
    set(0o1777);
    open().unwrap();
    set(0o755);
    open().unwrap();
    if rustix::process::geteuid().is_root() {
        set(0o775);
        std::os::unix::fs::chown(&above, None, Some(65534)).unwrap();
        assert!(matches!(open(), Err(CompileError::Parent { .. })));
        set(0o755);
        std::os::unix::fs::chown(&above, Some(65534), None).unwrap();
        assert!(matches!(
            open(),
            Err(CompileError::Parent { owner: 65534, .. })
        ));
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_file_that_is_not_a_component_is_refused_by_name() {
    let fixture = cache_with(Limits::default());
    let core = wat::parse_str("(module)").unwrap();
    let broken = [component(1), vec![0xff; 10]].concat();
    for (wasm, expected) in [
        (
            &b"GIF89a"[..],
            "the compiler refuses `some.wasm`: not a WebAssembly file",
        ),
        (
            b"",
            "the compiler refuses `some.wasm`: not a WebAssembly file",
        ),
        (
            b"(component)",
            "the compiler refuses `some.wasm`: not a WebAssembly file",
        ),
        (
            &core,
            "the compiler refuses `some.wasm`: a core module and not a component",
        ),
        (&broken, "the compiler refuses `some.wasm`: "),
    ] {
        let error = fixture.compiled(wasm).await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(fixture.files().is_empty());
}

/// Returns a function so large that compiling it takes seconds and a lot of memory.
fn bomb() -> Vec<u8> {
    let body =
        "local.get 0 i32.popcnt local.get 1 i32.rotl local.tee 1 i32.load drop ".repeat(200_000);
    wat::parse_str(format!(
        "(component (core module $m (memory 1) (func (param i32) (local i32) {body})))"
    ))
    .unwrap()
}

#[tokio::test]
async fn a_component_that_needs_too_much_to_compile_is_ended() {
    let wasm = bomb();
    let memory = cache_with(Limits {
        memory: 96 << 20,
        ..Limits::default()
    });
    let error = memory.compiled(&wasm).await.unwrap_err();
    assert!(matches!(error, CompileError::Killed { .. }), "{error}");
    assert!(error.to_string().contains("96 MiB of memory"), "{error}");

    let clock = cache_with(Limits {
        wall: Duration::from_millis(50),
        ..Limits::default()
    });
    let error = clock.compiled(&wasm).await.unwrap_err();
    assert!(matches!(error, CompileError::TimedOut { .. }), "{error}");

    let size = cache_with(Limits {
        wasm: 1000,
        ..Limits::default()
    });
    let error = size.compiled(&wasm).await.unwrap_err();
    assert!(matches!(error, CompileError::TooLarge { .. }), "{error}");

    let output = cache_with(Limits {
        output: 100,
        ..Limits::default()
    });
    let error = output.compiled(&component(1)).await.unwrap_err();
    assert!(
        matches!(error, CompileError::OutputTooLarge { .. }),
        "{error}"
    );
    // None of these left anything behind, and the next one compiles.
    assert!(output.files().is_empty());
    assert!(memory.compiled(&component(1)).await.is_ok());
}

#[tokio::test]
async fn a_compiler_that_hangs_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let compiler = folder.path().join("compiler");
    fs::write(&compiler, "#!/bin/sh\nexec /bin/sleep 1000\n").unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    let limits = Limits {
        idle: Duration::from_millis(600),
        ..Limits::default()
    };
    let cache = Cache::new(folder.path().join("compiled"), compiler, limits).unwrap();
    let error = compiled(&cache, &component(1), Profile::Plugin)
        .await
        .unwrap_err();
    assert!(matches!(error, CompileError::Stuck { .. }), "{error}");
}

#[tokio::test]
async fn cpu_time_is_bounded() {
    let fixture = cache_with(Limits {
        cpu: Duration::from_secs(1),
        ..Limits::default()
    });
    // Several bombs in one, so that even a fast machine needs more than a second for it.
    let function =
        "local.get 0 i32.popcnt local.get 1 i32.rotl local.tee 1 i32.load drop ".repeat(100_000);
    let functions = format!("(func (param i32) (local i32) {function})").repeat(12);
    let wasm = wat::parse_str(format!(
        "(component (core module $m (memory 1) {functions}))"
    ))
    .unwrap();
    let error = fixture.compiled(&wasm).await.unwrap_err();
    assert!(matches!(error, CompileError::Killed { .. }), "{error}");
}

#[tokio::test]
async fn old_files_go_when_there_are_too_many() {
    let size = {
        let fixture = cache_with(Limits::default());
        fs::metadata(fixture.compiled(&component(1)).await.unwrap())
            .unwrap()
            .len()
    };
    let fixture = cache_with(Limits {
        folder: size * 2 + size / 2,
        ..Limits::default()
    });
    let first = fixture.compiled(&component(1)).await.unwrap();
    let second = fixture.compiled(&component(2)).await.unwrap();
    let hour = std::time::SystemTime::now() - Duration::from_secs(3600);
    for path in [&first, &second] {
        fs::File::open(path).unwrap().set_modified(hour).unwrap();
    }
    // Using it makes it the most recent one.
    fixture.compiled(&component(1)).await.unwrap();
    // Files compiled with other settings are removed at once; files that are not compiled code stay.
    let folder = first.parent().unwrap();
    fs::write(folder.join("0123-plugin-ffff.cwasm"), b"x").unwrap();
    fs::write(folder.join("0123-service-ffff.cwasm"), b"x").unwrap();
    fs::write(folder.join("note"), b"x").unwrap();
    let third = fixture.compiled(&component(3)).await.unwrap();
    assert!(first.exists() && !second.exists() && third.exists());
    let left = fixture.files();
    assert!(
        !left.iter().any(|name| name == "0123-plugin-ffff.cwasm"),
        "{left:?}"
    );
    assert!(
        left.iter().any(|name| name == "0123-service-ffff.cwasm"),
        "{left:?}"
    );
    assert!(left.iter().any(|name| name == "note"), "{left:?}");
}

#[test]
fn a_folder_of_someone_else_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::create_dir(&target).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert!(matches!(
        Cache::new(&link, compiler(), Limits::default()),
        Err(CompileError::Folder { .. })
    ));

    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&target, Some(65534), None).unwrap();
        let refused = Cache::new(&target, compiler(), Limits::default());
        assert!(matches!(
            refused,
            Err(CompileError::Owner { owner: 65534, .. })
        ));
    }
    // If others can write to our folder, it is made private, and what a kill left there is removed.
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(open.join("unfinished-x"), b"half").unwrap();
    Cache::new(&open, compiler(), Limits::default()).unwrap();
    assert_eq!(
        fs::metadata(&open).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert!(!open.join("unfinished-x").exists());
}

#[tokio::test]
async fn a_compiler_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(
        folder.path(),
        "/nowhere/supervisor-compile",
        Limits::default(),
    )
    .unwrap();
    let wasm = component(1);
    let compiled = compiled(&cache, &wasm, Profile::Plugin);
    let error = compiled.await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot run the compiler `/nowhere/supervisor-compile`"
    );
}

/// Waits until a compiler has confined itself, and returns its limits.
async fn until_confined(id: u32) -> String {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        // The last thing that it does.
        if status.lines().any(|line| line == "Seccomp:\t2") {
            return fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
        }
        assert!(tokio::time::Instant::now() < deadline, "{status}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_compiler_ends_with_the_process_that_started_it() {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
    let mut parent = tokio::process::Command::new("sh")
        .args([
            "-c",
            "exec 3<&0; \"$0\" --profile plugin <&3 3<&- & echo $!; wait",
        ])
        .arg(compiler())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (input, output) = (parent.stdin.take().unwrap(), parent.stdout.take().unwrap());
    let (mut output, mut line) = (BufReader::new(output), String::new());
    output.read_line(&mut line).await.unwrap();
    until_confined(line.trim().parse().unwrap()).await;
    parent.kill().await.unwrap();
    // The output ends when the last process that has it open ends; the compiler's input is still open.
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(DEADLINE, output.read_to_end(&mut rest)).await;
    ended.expect("the compiler is still running").unwrap();
    drop(input);
}

/// Ctrl-C in a terminal ends every process of the group, so that a compilation would count as failed.
#[tokio::test]
async fn a_compiler_is_not_in_the_group_of_the_process_that_started_it() {
    // The process group is the third field after the name, which is in parentheses.
    let script =
        Script::new("read -r line < /proc/$$/stat; echo \"group ${line##*) }\" >&2; exit 1");
    let cache = script.cache(Limits::default());
    let failed = compiled(&cache, &component(1), Profile::Plugin).await;
    let message = failed.unwrap_err().to_string();
    let (_, fields) = message.split_once("group ").unwrap();
    let group: i32 = fields.split(' ').nth(2).unwrap().parse().unwrap();
    let own = rustix::process::getpgrp().as_raw_pid();
    assert_ne!(group, own, "{message}");
}

#[tokio::test]
async fn the_compiler_runs_without_privileges() {
    use tokio::io::AsyncWriteExt as _;
    let mut child = tokio::process::Command::new(compiler())
        .args(["--profile", "plugin"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let id = child.id().unwrap();
    let limits = until_confined(id).await;
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let field = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_default();
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    // M4: the first to be killed if memory runs out.
    let score = fs::read_to_string(format!("/proc/{id}/oom_score_adj")).unwrap();
    assert_eq!(score.trim(), "800");
    if rustix::process::geteuid().is_root() {
        assert_eq!(field("Uid:"), ["65534"; 4]);
        assert_eq!(field("Gid:"), ["65534"; 4]);
        assert_eq!(field("CapEff:"), ["0000000000000000"]);
        assert!(field("Groups:").is_empty());
    }
    for (name, value) in [
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max cpu time", "120"),
    ] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(
            line.trim_start_matches(name).split_whitespace().next(),
            Some(value),
            "{line}"
        );
    }
    child.stdin.take().unwrap().write_all(b"x").await.unwrap();
    assert!(!child.wait().await.unwrap().success());
}

#[tokio::test]
async fn files_in_use_stay_and_take_no_room_from_the_others() {
    let size = {
        let fixture = cache_with(Limits::default());
        let file = fixture.compiled(&component(1)).await.unwrap();
        fs::metadata(file).unwrap().len()
    };
    let fixture = cache_with(Limits {
        folder: size * 2 + size / 2,
        ..Limits::default()
    });
    let mut files = Vec::new();
    let mut kept = Vec::new();
    for number in 1..=4 {
        let file = fixture.compiled(&component(number)).await.unwrap();
        if number <= 3 {
            kept.push(fixture.cache.keep(&file));
        }
        files.push(file);
    }
    assert!(files.iter().all(|file| file.exists()), "{files:?}");
    // In use twice, and then no longer.
    let again = fixture.cache.keep(&files[0]);
    drop(kept);
    fixture.compiled(&component(5)).await.unwrap();
    let left = files.iter().map(|file| file.exists());
    assert_eq!(left.collect::<Vec<_>>(), [true, false, false, true]);
    drop(again);
}

/// Returns a component with a long function that does not depend on `number`, and a short one that does.
fn component_with_library(number: u32) -> Vec<u8> {
    let additions = "local.get 0 i32.const 7 i32.mul local.get 0 i32.xor local.set 0\n".repeat(200);
    let text = format!(
        "(component (core module $m
             (func $library (param i32) (result i32) {additions} local.get 0)
             (func (export \"f\") (result i32) i32.const {number} call $library))
           (core instance $i (instantiate $m))
           (func (export \"f\") (result s32) (canon lift (core func $i \"f\"))))"
    );
    wat::parse_str(text).unwrap()
}

/// A compiler that passes its input on, and records its arguments.
fn recording_compiler() -> Script {
    let script = Script::new("");
    let recorded = script.folder.path().join("arguments");
    let text = format!(
        "#!/bin/sh\necho \"$@\" >> {}\nexec {} \"$@\"\n",
        recorded.display(),
        compiler().display()
    );
    fs::write(script.path(), text).unwrap();
    script
}

/// Returns the number of bytes of functions that each compilation of the script got; `None` without reuse.
fn functions_given(script: &Script) -> Vec<Option<u64>> {
    let arguments = fs::read_to_string(script.folder.path().join("arguments")).unwrap();
    let given = arguments.lines().map(|line| {
        let (_, rest) = line.split_once("--functions-bytes ")?;
        rest.split(' ').next()?.parse().ok()
    });
    given.collect()
}

fn function_files(folder: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(folder.join("compiled")).unwrap();
    let paths = listing.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths
        .filter(|path| name(path).starts_with("functions-"))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_later_component_takes_over_the_functions_of_an_earlier_one_and_compiles_to_the_same() {
    let fixture = cache_with(Limits::default());
    let mut expected = Vec::new();
    for number in [1, 2] {
        let file = fixture
            .compiled(&component_with_library(number))
            .await
            .unwrap();
        expected.push(fs::read(file).unwrap());
    }
    let script = recording_compiler();
    let cache = script.cache(Limits::default()).reusing_functions_from(0);
    for (number, expected) in [(1, &expected[0]), (2, &expected[1])] {
        let wasm = component_with_library(number);
        let file = compiled(&cache, &wasm, Profile::Plugin).await.unwrap();
        assert!(fs::read(file).unwrap() == *expected, "{number}");
    }
    let files = function_files(script.folder.path());
    // The second compilation found the long function, and short ones are not kept.
    assert_eq!(files.len(), 1, "{files:?}");
    let size = fs::metadata(&files[0]).unwrap().len();
    assert_eq!(functions_given(&script), [Some(0), Some(size)]);
    // Services have functions of their own: they are compiled with other settings.
    let wasm = component_with_library(1);
    compiled(&cache, &wasm, Profile::Service).await.unwrap();
    assert_eq!(functions_given(&script).last(), Some(&Some(0)));
}

#[tokio::test]
async fn functions_that_are_damaged_or_from_elsewhere_are_not_reused() {
    let script = recording_compiler();
    let cache = script.cache(Limits::default()).reusing_functions_from(0);
    let wasm = component_with_library(1);
    compiled(&cache, &wasm, Profile::Plugin).await.unwrap();
    let files = function_files(script.folder.path());
    let [file] = &files[..] else {
        panic!("{files:?}");
    };
    let sound = fs::read(file).unwrap();
    // A bit of the code is flipped.
    let mut damaged = sound.clone();
    damaged[sound.len() / 2] ^= 0x10;
    fs::write(file, &damaged).unwrap();
    let wasm = component_with_library(2);
    compiled(&cache, &wasm, Profile::Plugin).await.unwrap();
    assert_eq!(functions_given(&script).last(), Some(&Some(0)));
    // It has been replaced by what this compilation returned.
    assert_eq!(fs::read(file).unwrap(), sound);

    // The name of another folder's file, whose key is another.
    let elsewhere = recording_compiler();
    let other = elsewhere.cache(Limits::default()).reusing_functions_from(0);
    compiled(&other, &wasm, Profile::Plugin).await.unwrap();
    let brought = function_files(elsewhere.folder.path()).remove(0);
    fs::remove_file(file).unwrap();
    fs::copy(&brought, file.with_file_name(name(&brought))).unwrap();
    let wasm = component_with_library(3);
    compiled(&cache, &wasm, Profile::Plugin).await.unwrap();
    assert_eq!(functions_given(&script).last(), Some(&Some(0)));
}

#[tokio::test]
async fn a_cache_that_does_not_reuse_functions_neither_gives_nor_keeps_any() {
    let script = recording_compiler();
    let cache = script.cache(Limits::default());
    for number in [1, 2] {
        let wasm = component_with_library(number);
        compiled(&cache, &wasm, Profile::Plugin).await.unwrap();
    }
    assert_eq!(functions_given(&script), [None, None]);
    assert!(function_files(script.folder.path()).is_empty());
}

#[tokio::test]
async fn small_components_are_compiled_without_the_functions_of_others() {
    let script = recording_compiler();
    let (small, large) = (component(1), component_with_library(1));
    let from = large.len() / 2;
    assert!(small.len() < from, "{} {from}", small.len());
    let cache = script.cache(Limits::default()).reusing_functions_from(from);
    for wasm in [&small, &large, &component(2)] {
        compiled(&cache, wasm, Profile::Plugin).await.unwrap();
    }
    assert_eq!(functions_given(&script), [None, Some(0), None]);
}

/// A component can take control of the compiler, which then says what it likes about its output.
#[tokio::test]
async fn a_compiler_that_lies_about_its_output_fills_neither_the_memory_nor_the_disk() {
    let limits = Limits {
        output: 1 << 20,
        ..Limits::default()
    };
    // No length; a length beyond everything; a length beyond what follows; endless functions.
    for (output, is_file) in [
        ("printf abc", true),
        (r"printf '\377\377\377\377\377\377\377\377'; yes", false),
        (r"printf '\377\0\0\0\0\0\0\0abc'", true),
        (r"printf '\3\0\0\0\0\0\0\0abc'; yes", false),
    ] {
        let script = Script::new(&format!("cat > /dev/null; {output}"));
        let cache = script.cache(limits.clone()).reusing_functions_from(0);
        let outcome = compiled(&cache, &component(1), Profile::Plugin).await;
        assert_eq!(outcome.is_ok(), is_file, "{output}: {outcome:?}");
        let files = fs::read_dir(script.folder.path().join("compiled")).unwrap();
        let sizes = files.map(|entry| entry.unwrap().metadata().unwrap().len());
        assert!(sizes.sum::<u64>() <= 2 << 20, "{output}");
    }
}
