//! Compiled files, each created once.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use confinement::Report;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::child::Compiler;
use crate::code_digest::CodeDigest;
use crate::code_key::CodeKey;
use crate::entries::UnfinishedFile;
use crate::failures::{self, Conditions};
use crate::functions::Functions;
use crate::source::{Source, settings};
use crate::{CompileError, Limits, Profile, child, entries};

/// The folder of compiled files and the compiler that fills it. Cloning shares it.
///
/// A component is identified by the [digest of its code](CodeDigest): with changed code it is another component, and the
/// same code in two files is compiled once, even for many simultaneous requests.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<SharedCache>,
}

struct SharedCache {
    folder: PathBuf,
    key: CodeKey,
    compiler: PathBuf,
    limits: Limits,
    /// Turns to compile plugins; turns to compile services.
    plugins: Semaphore,
    services: Semaphore,
    /// From how many bytes of a component on its compilation takes over functions from earlier ones; never if not set.
    reuses_functions_from: OnceLock<usize>,
    /// Whether nothing is compiled if a wall around the compiler is missing; called each time.
    requires_confinement: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// The walls around the compiler when it last ran.
    walls: Mutex<Option<Report>>,
    /// The files that are in use.
    kept: Mutex<HashMap<PathBuf, Weak<()>>>,
    /// The present compilations, by the beginning of their files' names.
    running: Mutex<HashMap<String, WeakShared<Compilation>>>,
}

/// A guard that marks a compiled file as in use.
#[derive(Debug)]
pub struct KeptFile(#[expect(dead_code, reason = "held for its drop")] Arc<()>);

type Compilation = BoxFuture<'static, Result<(), CompileError>>;

impl SharedCache {
    fn requires_confinement(&self) -> bool {
        self.requires_confinement.get().is_some_and(|rule| rule())
    }

    /// Records the walls that were around the compiler. Logs missing ones when they change.
    fn note_walls(&self, walls: Option<Report>) {
        let mut noted = self.walls.lock();
        if let Some(walls) = walls
            && noted.as_ref() != Some(&walls)
        {
            if !walls.missing.is_empty() {
                tracing::warn!(
                    "the compiler runs without restrictions that this system lacks: {}",
                    walls.missing_in_words()
                );
            }
            *noted = Some(walls);
        }
    }

    /// Returns the files that stay, whatever the size limit of the folder.
    fn in_use(&self) -> HashSet<PathBuf> {
        let mut kept = self.kept.lock();
        kept.retain(|_, file| file.strong_count() > 0);
        kept.keys().cloned().collect()
    }

    fn turns(&self, profile: Profile) -> &Semaphore {
        match profile {
            Profile::Plugin => &self.plugins,
            Profile::Service => &self.services,
        }
    }
}

impl Cache {
    /// Creates a cache in `folder`, which is created if it does not exist and belongs only to this cache; `compiler` is
    /// the program `supervisor-compile`.
    ///
    /// # Errors
    /// [`CompileError::Folder`] or [`CompileError::Owner`] if the folder cannot be used.
    pub fn new(
        folder: impl Into<PathBuf>,
        compiler: impl Into<PathBuf>,
        limits: Limits,
    ) -> Result<Cache, CompileError> {
        let folder = folder.into();
        entries::open_folder(&folder)?;
        let key = CodeKey::open(&folder)?;
        let turns = || Semaphore::new(limits.at_once.max(1));
        Ok(Cache {
            shared: Arc::new(SharedCache {
                folder,
                key,
                compiler: compiler.into(),
                plugins: turns(),
                services: turns(),
                limits,
                reuses_functions_from: OnceLock::new(),
                requires_confinement: OnceLock::new(),
                walls: Mutex::default(),
                kept: Mutex::default(),
                running: Mutex::default(),
            }),
        })
    }

    /// Makes compilations of components with at least `size` bytes ([`LARGE_COMPONENT`](crate::LARGE_COMPONENT)) take over
    /// the functions that earlier ones have translated, which saves more than half of the time if a component in Python has
    /// changed a little. The price is space in the folder, and trust: a component that takes control of the compiler
    /// determines the code of later ones. So this is for developers, whose components are all their own. Can be set once.
    #[must_use]
    pub fn reusing_functions_from(self, size: usize) -> Cache {
        let _ = self.shared.reuses_functions_from.set(size);
        self
    }

    /// Makes the cache compile nothing from now on if a wall around the compiler is missing and `required`, which is
    /// called each time, returns true. Can be set once.
    #[must_use]
    pub fn requiring_confinement(
        self,
        required: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Cache {
        let _ = self.shared.requires_confinement.set(Box::new(required));
        self
    }

    /// Returns the walls around the compiler when it last ran; `None` if it has not run yet.
    #[must_use]
    pub fn compiler_walls(&self) -> Option<Report> {
        self.shared.walls.lock().clone()
    }

    /// Finds the intact compiled file of the component with this digest, if there is one. Only loading shows whether it
    /// loads: a caller whose file does not load must [discard](Cache::discard) it.
    pub async fn find_file(&self, digest: &CodeDigest, profile: Profile) -> Option<PathBuf> {
        let stem = entries::stem(digest.as_str(), profile.into(), &settings(profile));
        let path = self.sound_file(&stem).await?;
        entries::touch(&path);
        Some(path)
    }

    /// Like [`Cache::find_file`], but compiles the component if there is no file.
    ///
    /// # Errors
    /// If it is not a valid component, or compiling it exceeds the limits.
    pub async fn compile_file(
        &self,
        source: &Source<'_>,
        profile: Profile,
    ) -> Result<PathBuf, CompileError> {
        self.check_size(source)?;
        let stem = source.stem(profile);
        if let Some(path) = self.sound_file(&stem).await {
            entries::touch(&path);
            return Ok(path);
        }
        self.compile_unless_failed(source, profile, &stem).await?;
        let path = self.sound_file(&stem).await;
        path.ok_or_else(|| self.unusable(source.name, GONE.to_owned()))
    }

    /// Like [`Cache::compile_file`], for the component in the file at `path`.
    ///
    /// # Errors
    /// The same errors, and [`CompileError::Read`].
    pub async fn compile_component(
        &self,
        path: &Path,
        profile: Profile,
    ) -> Result<PathBuf, CompileError> {
        let (owned, limit) = (path.to_owned(), self.shared.limits.wasm);
        let wasm = tokio::task::spawn_blocking(move || read(&owned, limit)).await;
        let wasm =
            wasm.unwrap_or_else(|_| Err(read_error(path, std::io::Error::other("cut short"))))?;
        let name = path.display().to_string();
        self.compile_file(&Source::new(&name, &wasm), profile).await
    }

    /// Keeps a compiled file in the folder for as long as the returned guard lives. If a file in use were removed, it
    /// would be compiled again after the next start.
    #[must_use]
    pub fn keep(&self, file: &Path) -> KeptFile {
        let mut kept = self.shared.kept.lock();
        let same = kept.get(file).and_then(Weak::upgrade);
        let guard = same.unwrap_or_default();
        kept.insert(file.to_owned(), Arc::downgrade(&guard));
        KeptFile(guard)
    }

    /// Removes a compiled file that does not load.
    pub async fn discard(&self, file: PathBuf) {
        // If the file stays, it is found again, and fails to load again.
        let _ = tokio::fs::remove_file(file).await;
    }

    /// Creates the error for a component `name` whose compiled code does not load, with the reason.
    #[must_use]
    pub fn unusable(&self, name: &str, reason: String) -> CompileError {
        CompileError::Unusable {
            name: name.to_owned(),
            compiler: self.shared.compiler.clone(),
            reason,
        }
    }

    fn check_size(&self, source: &Source<'_>) -> Result<(), CompileError> {
        let (size, limit) = (source.wasm.len() as u64, self.shared.limits.wasm);
        if size > limit {
            return Err(CompileError::TooLarge {
                name: source.name.to_owned(),
                size,
                limit,
            });
        }
        Ok(())
    }

    /// Compiles under `stem`, unless that failed before.
    async fn compile_unless_failed(
        &self,
        source: &Source<'_>,
        profile: Profile,
        stem: &str,
    ) -> Result<(), CompileError> {
        let SharedCache {
            folder,
            compiler,
            limits,
            ..
        } = &*self.shared;
        let requires_confinement = self.shared.requires_confinement();
        let conditions = Conditions::new(compiler, limits, &source.edition, requires_confinement);
        if let Some(past) = failures::recall(folder, stem, &conditions) {
            return Err(CompileError::FailedBefore {
                again_in: past.again_in,
                reason: past.reason,
            });
        }
        let compiled = self.compile_once(source, profile, stem).await;
        compiled.inspect_err(|error| failures::note(folder, stem, &conditions, error))
    }

    /// Returns the file that was compiled under `stem`, after checking it against the digest in its name. Damaged files
    /// are removed.
    async fn sound_file(&self, stem: &str) -> Option<PathBuf> {
        let (cache, stem) = (self.shared.clone(), stem.to_owned());
        let sound_file = tokio::task::spawn_blocking(move || {
            let mut files = entries::find(&cache.folder, &stem).into_iter();
            files.find(|path| {
                let is_sound = matches!(entries::is_sound(&cache.key, path), Ok(true));
                if !is_sound {
                    tracing::info!(
                        path = %path.display(),
                        "`{}` is damaged, or was not compiled on this device",
                        path.display()
                    );
                    let _ = fs::remove_file(path);
                }
                is_sound
            })
        });
        sound_file.await.ok().flatten()
    }

    /// Compiles under `stem`, or waits for a compilation in progress.
    async fn compile_once(
        &self,
        source: &Source<'_>,
        profile: Profile,
        stem: &str,
    ) -> Result<(), CompileError> {
        let compilation: Shared<Compilation> = {
            let mut running = self.shared.running.lock();
            running.retain(|_, other| other.upgrade().is_some());
            match running.get(stem).and_then(WeakShared::upgrade) {
                Some(same) => same,
                None => {
                    let (name, wasm) = (source.name.to_owned(), source.wasm.to_vec());
                    let cache = self.shared.clone();
                    let compilation = compile(cache, name, wasm, profile, stem.to_owned());
                    let compilation = compilation.boxed().shared();
                    running.extend(compilation.downgrade().map(|weak| (stem.to_owned(), weak)));
                    compilation
                }
            }
        };
        compilation.await
    }
}

/// The reason why compiled code cannot be used if its file was removed in the meantime.
const GONE: &str = "its file is gone";

async fn compile(
    cache: Arc<SharedCache>,
    name: String,
    wasm: Vec<u8>,
    profile: Profile,
    stem: String,
) -> Result<(), CompileError> {
    // The semaphore is never closed.
    let _turn = cache.turns(profile).acquire().await;
    // Another compilation may have finished since the caller checked.
    if !entries::find(&cache.folder, &stem).is_empty() {
        return Ok(());
    }
    let begun = std::time::Instant::now();
    let mut output = UnfinishedFile::create(&cache.folder, &cache.key, &stem)?;
    let mut functions = None;
    if let Some(size) = cache.reuses_functions_from.get()
        && wasm.len() >= *size
    {
        functions = Some(Functions::open(&cache.folder, &cache.key, profile).await?);
    }
    let compiler = Compiler {
        program: &cache.compiler,
        limits: &cache.limits,
        profile,
        requires_confinement: cache.requires_confinement(),
    };
    let walls = child::compile(compiler, &name, &wasm, functions.as_mut(), &mut output).await?;
    cache.note_walls(walls);
    if let Some(functions) = functions {
        functions.keep_new(&name).await;
    }
    tracing::info!(
        name,
        "compiled `{name}`: {} bytes of wasm to {} of native code in {} ms",
        wasm.len(),
        output.size(),
        begun.elapsed().as_millis()
    );
    let target = output.finish().await?;
    let (folder, limit) = (cache.folder.clone(), cache.limits.folder);
    let in_use = cache.in_use();
    let cleaned = tokio::task::spawn_blocking(move || {
        let settings = settings(profile);
        entries::clean(
            &folder,
            (profile.into(), &settings),
            limit,
            &target,
            &in_use,
        );
    });
    // Files that stay too long do not affect this component.
    let _ = cleaned.await;
    Ok(())
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, CompileError> {
    let size = fs::metadata(path)
        .map_err(|error| read_error(path, error))?
        .len();
    if size > limit {
        return Err(CompileError::TooLarge {
            name: path.display().to_string(),
            size,
            limit,
        });
    }
    fs::read(path).map_err(|error| read_error(path, error))
}

fn read_error(path: &Path, error: std::io::Error) -> CompileError {
    CompileError::Read {
        path: path.to_owned(),
        source: Arc::new(error),
    }
}
