use super::*;

/// A file from a maker, and the device's plugin folders.
struct Owner(tempfile::TempDir);

impl Owner {
    fn new() -> Owner {
        let owner = Owner(tempfile::tempdir().unwrap());
        for folder in ["plugins", "more"] {
            fs::create_dir(owner.path(folder)).unwrap();
        }
        owner
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// Writes the plugin `name` into a file.
    fn plugin(&self, below: &str, name: &str, version: &str) {
        let manifest = format!(
            "name = \"{name}\"\nversion = \"{version}\"\ninterface = \"1.0.0\"\n\
                 [[routes]]\nmethod = \"GET\"\npath = \"/v3/{name}\"\n"
        );
        let mut wasm = plugin_manifest::COMPONENT.to_vec();
        plugin_manifest::append_section(&mut wasm, crate::SECTION, manifest.as_bytes());
        fs::write(self.path(below), wasm).unwrap();
    }

    fn source(&self) -> SourceFile {
        SourceFile::read(&self.path("new.wasm")).unwrap()
    }

    /// Returns where `source` belongs.
    fn find<'a>(&self, source: &'a SourceFile) -> Result<Placement<'a>, PlacementError> {
        let folders = [self.path("plugins"), self.path("more")];
        let folder = install_folder(source, &folders, &self.path("stock.toml"))?;
        Placement::find(
            source,
            folder,
            &InstalledPlugins::read_with_keys(&folders, &[]),
        )
    }

    fn refusal(&self) -> String {
        self.find(&self.source()).unwrap_err().to_string()
    }

    fn is_installed_as(&self, below: &str) -> bool {
        fs::read(self.path(below)).unwrap() == fs::read(self.path("new.wasm")).unwrap()
    }
}

#[test]
fn a_plugin_is_stored_under_its_name_or_in_the_file_that_it_replaces() {
    let owner = Owner::new();
    owner.plugin("new.wasm", "rails", "0.2.0");
    owner.plugin("plugins/other.wasm", "other", "1.0.0");
    fs::write(owner.path("plugins/broken.wasm"), "broken").unwrap();
    let source = owner.source();
    let place = owner.find(&source).unwrap();
    assert_eq!(place.file, owner.path("plugins/rails.wasm"));
    assert_eq!(place.previous, None);
    place.write().unwrap();
    assert!(owner.is_installed_as("plugins/rails.wasm"));

    fs::rename(
        owner.path("plugins/rails.wasm"),
        owner.path("plugins/00-rails.wasm"),
    )
    .unwrap();
    owner.plugin("new.wasm", "rails", "0.3.0");
    let source = owner.source();
    let place = owner.find(&source).unwrap();
    assert_eq!(place.file, owner.path("plugins/00-rails.wasm"));
    assert_eq!(place.previous, Some(Version::new(0, 2, 0)));
    place.write().unwrap();
    assert!(owner.is_installed_as("plugins/00-rails.wasm"));
}

#[test]
fn a_signature_beside_the_file_goes_with_it() {
    let owner = Owner::new();
    let beside = owner.path("plugins/rails.wasm.minisig");
    for signature in [Some("by one"), None, Some("by two")] {
        owner.plugin("new.wasm", "rails", "0.2.0");
        let _ = fs::remove_file(owner.path("new.wasm.minisig"));
        if let Some(text) = signature {
            fs::write(owner.path("new.wasm.minisig"), text).unwrap();
        }
        owner.find(&owner.source()).unwrap().write().unwrap();
        let found = fs::read_to_string(&beside).ok();
        assert_eq!(found.as_deref(), signature);
    }
    // That of a file that is gone does not stay.
    fs::remove_file(owner.path("plugins/rails.wasm")).unwrap();
    fs::remove_file(owner.path("new.wasm.minisig")).unwrap();
    owner.find(&owner.source()).unwrap().write().unwrap();
    assert!(!beside.exists());
}

/// Somebody replaces the file between the checks and the installation.
#[test]
fn the_installed_file_is_the_one_that_was_read() {
    let owner = Owner::new();
    owner.plugin("new.wasm", "rails", "0.2.0");
    fs::write(owner.path("new.wasm.minisig"), "by one").unwrap();
    let checked = fs::read(owner.path("new.wasm")).unwrap();
    let source = owner.source();
    let place = owner.find(&source).unwrap();
    owner.plugin("new.wasm", "rails", "9.9.9");
    fs::write(owner.path("new.wasm.minisig"), "by another").unwrap();
    place.write().unwrap();
    let installed = |below: &str| fs::read(owner.path(below)).unwrap();
    assert_eq!(installed("plugins/rails.wasm"), checked);
    assert_eq!(installed("plugins/rails.wasm.minisig"), b"by one");
    assert_eq!(source.digest, compiled_code::digest(&checked));
}

#[test]
fn nothing_is_written_where_the_plugin_would_not_be_loaded() {
    let owner = Owner::new();
    owner.plugin("new.wasm", "rails", "0.2.0");

    owner.plugin("plugins/rails.wasm", "other", "1.0.0");
    let error = owner.refusal();
    assert!(
        error.ends_with(
            "plugins/rails.wasm` exists already, but is not the plugin `rails`: remove or rename it"
        ),
        "{error}"
    );
    fs::remove_file(owner.path("plugins/rails.wasm")).unwrap();

    owner.plugin("more/rails.wasm", "rails", "0.1.0");
    let error = owner.refusal();
    assert!(error.contains("more/rails.wasm` already"), "{error}");
    owner.plugin("plugins/one.wasm", "rails", "0.1.0");
    let error = owner.refusal();
    assert!(error.contains("` and `"), "{error}");
    assert!(
        error.contains("already: remove what is not in `"),
        "{error}"
    );
    fs::remove_file(owner.path("more/rails.wasm")).unwrap();
    owner.plugin("plugins/two.wasm", "rails", "0.1.0");
    let error = owner.refusal();
    assert!(
        error.ends_with("already: none of them is loaded; remove all but one"),
        "{error}"
    );

    fs::remove_dir_all(owner.path("plugins")).unwrap();
    let error = owner.refusal();
    assert!(
        error.contains("create it, or name another one with --plugin-dir"),
        "{error}"
    );
    let source = owner.source();
    let error = install_folder(&source, &[], Path::new("/nowhere"));
    let error = error.unwrap_err();
    assert!(matches!(error, PlacementError::NoFolder(None)), "{error}");

    fs::write(owner.path("stock.toml"), "[plugins.rails]\n").unwrap();
    let error = owner.refusal();
    assert!(
        error.starts_with("`rails` is a plugin that the device ships with"),
        "{error}"
    );

    fs::write(owner.path("new.wasm"), "text").unwrap();
    let error = SourceFile::read(&owner.path("new.wasm")).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("it is not WebAssembly"), "{error}");
}
