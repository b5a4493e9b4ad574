//! A layer over SQLite's own file system that records what is written, in which order, and when it is synced to the
//! disk.

#![expect(
    unsafe_code,
    reason = "a file system of SQLite is a table of C functions"
)]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once};

use rusqlite::ffi::{
    SQLITE_OK, sqlite3_file, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
};

use super::disk::{Change, Op};

/// The operations on files in recorded folders, by folder.
static RECORDS: Mutex<BTreeMap<PathBuf, Vec<Op>>> = Mutex::new(BTreeMap::new());
/// The open files, by the address of SQLite's struct.
static OPEN: Mutex<BTreeMap<usize, OpenFile>> = Mutex::new(BTreeMap::new());
/// Tables with our functions, by the address of the tables that they replace.
static TABLES: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

#[derive(Clone)]
struct OpenFile {
    path: PathBuf,
    real: &'static sqlite3_io_methods,
}

/// Records SQLite's operations on the files in a folder, while it lives.
pub(super) struct Recorder(PathBuf);

impl Recorder {
    pub(super) fn start(folder: &Path) -> Recorder {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(register);
        let folder = folder.canonicalize().unwrap();
        RECORDS.lock().unwrap().insert(folder.clone(), Vec::new());
        Recorder(folder)
    }

    /// The number of operations so far.
    pub(super) fn count(&self) -> usize {
        RECORDS.lock().unwrap()[&self.0].len()
    }

    pub(super) fn finish(self) -> Vec<Op> {
        RECORDS.lock().unwrap().remove(&self.0).unwrap()
    }
}

fn note(path: &Path, change: Change) {
    let mut records = RECORDS.lock().unwrap();
    let Some((folder, name)) = path.parent().zip(path.file_name()) else {
        return;
    };
    if let Some(record) = records.get_mut(folder) {
        let file = name.to_str().unwrap().to_owned();
        record.push(Op { file, change });
    }
}

/// Puts this layer over the default one, for all connections of this process from now on.
fn register() {
    // SAFETY: asking for the default is always allowed; the result lives as long as the process.
    let real: &'static sqlite3_vfs =
        unsafe { sqlite3_vfs_find(std::ptr::null()).as_ref() }.unwrap();
    let ours = sqlite3_vfs {
        pNext: std::ptr::null_mut(),
        zName: c"recorded".as_ptr(),
        // Functions that are not replaced ignore it; ours pass the real one on.
        pAppData: std::ptr::from_ref(real).cast_mut().cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        ..*real
    };
    // SAFETY: it is never moved or freed.
    let registered = unsafe { sqlite3_vfs_register(Box::leak(Box::new(ours)), 1) };
    assert_eq!(registered, SQLITE_OK);
}

/// The layer below the one that `register` made.
fn below(ours: *mut sqlite3_vfs) -> *mut sqlite3_vfs {
    // SAFETY: SQLite passes the registered struct, whose `pAppData` is the real one.
    unsafe { (*ours).pAppData.cast() }
}

/// Returns SQLite's path; a missing one means a temporary file.
fn path_of(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: SQLite's names end with a zero.
    let name = unsafe { CStr::from_ptr(name) };
    Some(name.to_str().unwrap().into())
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let below = below(vfs);
    let path = path_of(name);
    let was_there = path.as_ref().is_some_and(|path| path.exists());
    // SAFETY: the arguments are SQLite's own, for a file struct of the size that the real layer requests.
    let opened = unsafe { (*below).xOpen.unwrap()(below, name, file, flags, out) };
    // SAFETY: SQLite provided the struct; it has a table if it has to be closed.
    let methods = unsafe { (*file).pMethods.as_ref() };
    let (Some(real), Some(path)) = (methods, path) else {
        return opened;
    };
    if opened == SQLITE_OK {
        note(
            &path,
            if was_there {
                Change::Open
            } else {
                Change::Make
            },
        );
    }
    let entry = OpenFile { path, real };
    OPEN.lock().unwrap().insert(file as usize, entry);
    // SAFETY: the struct remains the real layer's, whose functions are called with it; the table lives for ever.
    unsafe { (*file).pMethods = table(real) };
    opened
}

/// Returns a table like `real`, except that changes to a file are recorded.
fn table(real: &'static sqlite3_io_methods) -> *const sqlite3_io_methods {
    let mut tables = TABLES.lock().unwrap();
    let made = tables.entry(std::ptr::from_ref(real) as usize);
    let address = *made.or_insert_with(|| {
        let ours = sqlite3_io_methods {
            // Without mapped memory, which is not used for writing here.
            iVersion: real.iVersion.min(2),
            xClose: Some(close),
            xWrite: Some(write),
            xTruncate: Some(truncate),
            xSync: Some(sync),
            ..*real
        };
        std::ptr::from_ref::<sqlite3_io_methods>(Box::leak(Box::new(ours))) as usize
    });
    address as *const sqlite3_io_methods
}

fn known(file: *mut sqlite3_file) -> OpenFile {
    OPEN.lock().unwrap()[&(file as usize)].clone()
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let known = OPEN.lock().unwrap().remove(&(file as usize)).unwrap();
    // SAFETY: the real layer created the struct, and gets its own table back first.
    unsafe {
        (*file).pMethods = known.real;
        known.real.xClose.unwrap()(file)
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    at: i64,
) -> c_int {
    let known = known(file);
    // SAFETY: SQLite passed this many bytes.
    let written = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length as usize) };
    let change = Change::Write {
        at: at as usize,
        bytes: written.to_vec(),
    };
    note(&known.path, change);
    // SAFETY: as SQLite called us.
    unsafe { known.real.xWrite.unwrap()(file, bytes, length, at) }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: i64) -> c_int {
    let known = known(file);
    note(&known.path, Change::Truncate(length as usize));
    // SAFETY: as SQLite called us.
    unsafe { known.real.xTruncate.unwrap()(file, length) }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    let known = known(file);
    // SAFETY: as SQLite called us.
    let synced = unsafe { known.real.xSync.unwrap()(file, flags) };
    note(&known.path, Change::Sync);
    synced
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, flags: c_int) -> c_int {
    let below = below(vfs);
    // SAFETY: as SQLite called us.
    let deleted = unsafe { (*below).xDelete.unwrap()(below, name, flags) };
    if let Some(path) = path_of(name).filter(|_| deleted == SQLITE_OK) {
        note(&path, Change::Delete);
    }
    deleted
}
