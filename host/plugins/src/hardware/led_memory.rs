//! Remembers on disk what LEDs showed, so that they are restored even after a kill.
//!
//! A note is on the disk before the first change, and is removed once the LED is restored and nobody has opened it again
//! for [`KEPT_FOR`]; notes that exist at a start were left by a kill or a power cut.

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
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::led_snapshot::LedSnapshot;
use crate::log_lines::LineShare;

/// How long to wait for an LED that is being restored for its previous holder.
const RESTORED_WITHIN: Duration = Duration::from_secs(5);
/// How long a note stays after its LED was restored. Whoever opens the LED again within this time writes nothing to the
/// disk, so plugins that open one for each flash do not wear out flash memory. In return, a start after a kill within
/// this time restores the LED again, to what it showed a minute before at most.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The notes, and which LEDs are held now.
pub(crate) struct LedMemory {
    folder: PathBuf,
    leds: Mutex<LedTable>,
    /// Notified when an LED is released.
    let_go: Condvar,
}

/// By the folders of LEDs.
#[derive(Default)]
struct LedTable {
    holds: HashMap<PathBuf, Hold>,
    /// The notes on the disk.
    notes: HashMap<PathBuf, NoteFile>,
}

#[derive(Default)]
struct NoteFile {
    /// Its content; `None` if writing it has failed or has not ended.
    before: Option<LedSnapshot>,
    /// Until when it stays, if the LED is not held; `None` if the LED was not restored yet.
    kept_until: Option<Instant>,
    /// Whether a task removes it after that.
    has_remover: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// An instance holds it.
    ByInstance,
    /// No instance holds it any more, but it is not restored yet, or its note is being removed.
    Restoring,
}

#[derive(Serialize, Deserialize)]
struct Note {
    led: PathBuf,
    before: LedSnapshot,
}

/// The plugin that an LED is held for.
pub(crate) struct LedHolder {
    pub(crate) plugin: Arc<str>,
    /// The host's lines about what it makes the host do.
    pub(crate) lines: LineShare,
}

/// Proof that an LED is held; dropping it restores and releases the LED.
pub(crate) struct LedHold(Option<Restoration>);

/// An LED that is restored when this is dropped, wherever that happens.
struct Restoration {
    memory: Arc<LedMemory>,
    note: Note,
    holder: LedHolder,
}

impl LedMemory {
    /// Restores all LEDs that have notes in `state_dir`.
    pub(crate) fn open(state_dir: &Path) -> LedMemory {
        let memory = LedMemory {
            folder: state_dir.join("leds"),
            leds: Mutex::default(),
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
                memory.restore(&note, || true);
                memory.remove_file(&note.led);
            } else {
                let _ = fs::remove_file(&path);
            }
        }
        memory
    }

    /// Holds the LED in the folder `led`, and notes the result of `before`; returns `None` if it is already held. If
    /// no earlier note says the same, calls `take_write`, and writes one. Blocks.
    pub(crate) fn hold(
        self: &Arc<Self>,
        led: &Path,
        holder: LedHolder,
        before: impl FnOnce() -> io::Result<LedSnapshot>,
        take_write: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Option<LedHold>> {
        {
            let is_restoring = |leds: &mut LedTable| leds.holds.get(led) == Some(&Hold::Restoring);
            let mut leds = self.leds.lock();
            self.let_go
                .wait_while_for(&mut leds, is_restoring, RESTORED_WITHIN);
            if leds.holds.contains_key(led) {
                return Ok(None);
            }
            leds.holds.insert(led.to_owned(), Hold::ByInstance);
        }
        let noted = before().and_then(|before| {
            let note = Note {
                led: led.to_owned(),
                before,
            };
            if !self.has_note(&note) {
                take_write()?;
                self.write(&note)?;
            }
            Ok(note)
        });
        match noted {
            Ok(note) => Ok(Some(LedHold(Some(Restoration {
                memory: Arc::clone(self),
                note,
                holder,
            })))),
            Err(error) => {
                self.release(led);
                // An earlier note may still be there.
                self.remove_later(led);
                Err(error)
            }
        }
    }

    /// Waits until no LED is being restored, but at most [`RESTORED_WITHIN`], and removes the notes of LEDs that are not
    /// held. Blocks.
    pub(crate) fn finish(&self) {
        let is_restoring =
            |leds: &mut LedTable| leds.holds.values().any(|hold| *hold == Hold::Restoring);
        // The next start restores whatever is not restored by then.
        let mut leds = self.leds.lock();
        self.let_go
            .wait_while_for(&mut leds, is_restoring, RESTORED_WITHIN);
        let noted: Vec<PathBuf> = leds.notes.keys().cloned().collect();
        drop(leds);
        for led in noted {
            self.remove(&led);
        }
    }

    fn path(&self, led: &Path) -> PathBuf {
        let digest = hex::encode(Sha256::digest(led.as_os_str().as_encoded_bytes()));
        self.folder.join(format!("{}.json", &digest[..16]))
    }

    /// Returns whether the LED's note on the disk says the same.
    fn has_note(&self, note: &Note) -> bool {
        let leds = self.leds.lock();
        let before = leds.notes.get(&note.led);
        let before = before.and_then(|file| file.before.as_ref());
        before.is_some_and(|before| before.shows_the_same_as(&note.before))
    }

    fn write(&self, note: &Note) -> io::Result<()> {
        let set_content = |before| {
            let mut leds = self.leds.lock();
            leds.notes.entry(note.led.clone()).or_default().before = before;
        };
        set_content(None);
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.folder)?;
        let mut file = File::create(self.path(&note.led))?;
        file.write_all(&serde_json::to_vec(note)?)?;
        file.sync_all()?;
        File::open(&self.folder)?.sync_all()?;
        set_content(Some(note.before.clone()));
        Ok(())
    }

    fn restore(&self, note: &Note, may_log: impl FnOnce() -> bool) {
        match note.before.restore(&note.led) {
            Ok(()) => {}
            // The board no longer has such an LED.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                if may_log() {
                    let led = note.led.display();
                    tracing::warn!(%led, "cannot restore the LED `{led}`: {error}");
                }
            }
        }
    }

    /// Removes the note of an LED that is not held any more, once nobody has held it for [`KEPT_FOR`].
    fn remove_later(self: &Arc<Self>, led: &Path) {
        let Ok(runtime) = Handle::try_current() else {
            // The supervisor is ending.
            self.remove(led);
            return;
        };
        {
            let mut leds = self.leds.lock();
            let Some(note) = leds.notes.get_mut(led) else {
                return;
            };
            note.kept_until = Some(Instant::now() + KEPT_FOR);
            // One task for each LED, however often it is opened.
            if std::mem::replace(&mut note.has_remover, true) {
                return;
            }
        }
        runtime.spawn(Arc::clone(self).remove_once_unused(led.to_owned()));
    }

    async fn remove_once_unused(self: Arc<Self>, led: PathBuf) {
        while let Some(kept_until) = self.kept_until(&led) {
            tokio::time::sleep_until(kept_until).await;
        }
        // If it fails, the supervisor is ending, and the next start removes the note.
        let _ = tokio::task::spawn_blocking(move || self.remove(&led)).await;
    }

    /// Returns until when the note of an LED stays; `None` if that time is over.
    fn kept_until(&self, led: &Path) -> Option<Instant> {
        let leds = self.leds.lock();
        let kept_until = leds.notes.get(led)?.kept_until?;
        (kept_until > Instant::now()).then_some(kept_until)
    }

    /// Removes the note of an LED unless the LED is held: then this is up to its next release. Blocks.
    fn remove(&self, led: &Path) {
        {
            let mut leds = self.leds.lock();
            let Some(note) = leds.notes.get_mut(led) else {
                return;
            };
            note.has_remover = false;
            if leds.holds.contains_key(led) {
                return;
            }
            leds.notes.remove(led);
            // Whoever opens it in the meantime waits, so that no new note is removed.
            leds.holds.insert(led.to_owned(), Hold::Restoring);
        }
        self.remove_file(led);
        self.release(led);
    }

    fn remove_file(&self, led: &Path) {
        match fs::remove_file(self.path(led)) {
            Ok(()) => {}
            // It could not be written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let led = led.display();
                tracing::warn!(%led, "cannot remove the note of the LED `{led}`: {error}");
            }
        }
    }

    fn release(&self, led: &Path) {
        self.leds.lock().holds.remove(led);
        self.let_go.notify_all();
    }
}

impl Drop for LedHold {
    fn drop(&mut self) {
        let Some(restoring) = self.0.take() else {
            return;
        };
        let led = restoring.note.led.clone();
        let mut leds = restoring.memory.leds.lock();
        leds.holds.insert(led, Hold::Restoring);
        drop(leds);
        // A driver may take time, which the threads of the runtime do not have. If the runtime is ending, it drops the
        // closure without running it, which restores the LED as well.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(restoring))),
            Err(_) => drop(restoring),
        }
    }
}

impl Drop for Restoration {
    fn drop(&mut self) {
        let holder = &self.holder;
        let may_log = || holder.lines.take(&holder.plugin);
        self.memory.restore(&self.note, may_log);
        self.memory.release(&self.note.led);
        self.memory.remove_later(&self.note.led);
    }
}
