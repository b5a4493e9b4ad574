//! Remembers on disk what LEDs showed, so that they are restored even after a kill.
//!
//! A note is on the disk before the first change, and is removed once the LED is restored; notes that exist at a start
//! were left by a kill or a power cut.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::provision::led::LedSnapshot;

/// How long to wait for an LED that is being restored for its previous holder.
const RESTORED_WITHIN: Duration = Duration::from_secs(5);

/// The notes, and which LEDs are held now.
pub(crate) struct LedMemory {
    folder: PathBuf,
    holds: Mutex<HashMap<PathBuf, Hold>>,
    /// Notified when an LED is released.
    let_go: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// An instance holds it.
    Taken,
    /// No instance holds it any more, but it is not restored yet.
    Restoring,
}

#[derive(Serialize, Deserialize)]
struct Note {
    led: PathBuf,
    before: LedSnapshot,
}

/// Proof that an LED is held; dropping it restores and releases the LED.
pub(crate) struct LedHold(Option<Restoration>);

/// An LED that is restored when this is dropped, wherever that happens.
struct Restoration {
    memory: Arc<LedMemory>,
    note: Note,
}

impl LedMemory {
    /// Restores all LEDs that have notes in `state_dir`.
    pub(crate) fn open(state_dir: &Path) -> LedMemory {
        let memory = LedMemory {
            folder: state_dir.join("leds"),
            holds: Mutex::default(),
            let_go: Condvar::new(),
        };
        let Ok(entries) = fs::read_dir(&memory.folder) else {
            return memory;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let note = fs::read(&path)
                .ok()
                .and_then(|bytes| serde_json::from_slice::<Note>(&bytes).ok());
            // An incomplete note was cut short before the LED was touched.
            if let Some(note) = note {
                memory.restore(&note);
            } else {
                let _ = fs::remove_file(&path);
            }
        }
        memory
    }

    /// Holds the LED in the folder `led`, and notes the result of `before`; returns `None` if it is already held.
    /// Blocks.
    pub(crate) fn hold(
        self: &Arc<Self>,
        led: &Path,
        before: impl FnOnce() -> io::Result<LedSnapshot>,
    ) -> io::Result<Option<LedHold>> {
        {
            let is_restoring =
                |holds: &mut HashMap<PathBuf, Hold>| holds.get(led) == Some(&Hold::Restoring);
            let mut holds = self.holds.lock();
            self.let_go
                .wait_while_for(&mut holds, is_restoring, RESTORED_WITHIN);
            if holds.contains_key(led) {
                return Ok(None);
            }
            holds.insert(led.to_owned(), Hold::Taken);
        }
        let noted = before().and_then(|before| {
            let note = Note {
                led: led.to_owned(),
                before,
            };
            self.write(&note)?;
            Ok(note)
        });
        match noted {
            Ok(note) => Ok(Some(LedHold(Some(Restoration {
                memory: Arc::clone(self),
                note,
            })))),
            Err(error) => {
                self.release(led);
                Err(error)
            }
        }
    }

    /// Waits until no LED is being restored, but at most [`RESTORED_WITHIN`]. Blocks.
    pub(crate) fn wait_until_restored(&self) {
        let is_restoring = |holds: &mut HashMap<PathBuf, Hold>| {
            holds.values().any(|hold| *hold == Hold::Restoring)
        };
        // The next start restores whatever is not restored by then.
        self.let_go
            .wait_while_for(&mut self.holds.lock(), is_restoring, RESTORED_WITHIN);
    }

    fn path(&self, led: &Path) -> PathBuf {
        let digest = hex::encode(Sha256::digest(led.as_os_str().as_encoded_bytes()));
        self.folder.join(format!("{}.json", &digest[..16]))
    }

    fn write(&self, note: &Note) -> io::Result<()> {
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.folder)?;
        let mut file = File::create(self.path(&note.led))?;
        file.write_all(&serde_json::to_vec(note)?)?;
        file.sync_all()?;
        File::open(&self.folder)?.sync_all()
    }

    fn restore(&self, note: &Note) {
        let led = note.led.display();
        match note.before.restore(&note.led) {
            Ok(()) => {}
            // The board no longer has such an LED.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%led, "cannot restore the LED `{led}`: {error}"),
        }
        if let Err(error) = fs::remove_file(self.path(&note.led)) {
            tracing::warn!(%led, "cannot remove the note of the LED `{led}`: {error}");
        }
    }

    fn release(&self, led: &Path) {
        self.holds.lock().remove(led);
        self.let_go.notify_all();
    }
}

impl Drop for LedHold {
    fn drop(&mut self) {
        let Some(restoring) = self.0.take() else {
            return;
        };
        let led = restoring.note.led.clone();
        restoring.memory.holds.lock().insert(led, Hold::Restoring);
        // A driver may take time, which the threads of the runtime do not have. If the runtime is ending, it drops the
        // closure without running it, which restores the LED as well.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(restoring))),
            Err(_) => drop(restoring),
        }
    }
}

impl Drop for Restoration {
    fn drop(&mut self) {
        self.memory.restore(&self.note);
        self.memory.release(&self.note.led);
    }
}
