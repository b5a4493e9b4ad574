//! Remembers on disk what LEDs showed, so that they show it again even after a kill.
//!
//! A note is on the disk before the first change and goes once the LED is as it was; what is there at a
//! start was left by a kill or a power cut.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::provision::led::Before;

/// The notes, and who holds which LED now.
pub(crate) struct LedMemory {
    folder: PathBuf,
    held: Mutex<HashSet<PathBuf>>,
}

#[derive(Serialize, Deserialize)]
struct Note {
    led: PathBuf,
    before: Before,
}

/// Proof that an LED is held; dropping it restores the LED and lets it go.
pub(crate) struct Held {
    memory: Arc<LedMemory>,
    note: Note,
}

impl LedMemory {
    /// Restores all LEDs of which there are notes in `state_dir`.
    pub(crate) fn open(state_dir: &Path) -> LedMemory {
        let memory = LedMemory {
            folder: state_dir.join("leds"),
            held: Mutex::default(),
        };
        let Ok(entries) = fs::read_dir(&memory.folder) else {
            return memory;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let note = fs::read(&path)
                .ok()
                .and_then(|bytes| serde_json::from_slice::<Note>(&bytes).ok());
            // A note that is not whole was cut short before the LED was touched.
            if let Some(note) = note {
                memory.restore(&note);
            } else {
                let _ = fs::remove_file(&path);
            }
        }
        memory
    }

    /// Holds the LED in the folder `led`, noting what `before` finds; none if someone holds it already.
    pub(crate) fn hold(
        self: &Arc<Self>,
        led: &Path,
        before: impl FnOnce() -> io::Result<Before>,
    ) -> io::Result<Option<Held>> {
        {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            if !held.insert(led.to_owned()) {
                return Ok(None);
            }
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
            Ok(note) => Ok(Some(Held {
                memory: Arc::clone(self),
                note,
            })),
            Err(error) => {
                self.release(led);
                Err(error)
            }
        }
    }

    fn path(&self, led: &Path) -> PathBuf {
        let digest = hex::encode(Sha256::digest(led.as_os_str().as_encoded_bytes()));
        self.folder.join(format!("{}.json", &digest[..16]))
    }

    fn write(&self, note: &Note) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut file = File::create(self.path(&note.led))?;
        file.write_all(&serde_json::to_vec(note)?)?;
        file.sync_all()?;
        File::open(&self.folder)?.sync_all()
    }

    fn restore(&self, note: &Note) {
        match note.before.restore(&note.led) {
            Ok(()) => {}
            // The board has no such LED any more.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!("cannot restore the LED `{}`: {error}", note.led.display())
            }
        }
        if let Err(error) = fs::remove_file(self.path(&note.led)) {
            tracing::warn!(
                "cannot remove the note of the LED `{}`: {error}",
                note.led.display()
            );
        }
    }

    fn release(&self, led: &Path) {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(led);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.restore(&self.note);
        self.memory.release(&self.note.led);
    }
}
