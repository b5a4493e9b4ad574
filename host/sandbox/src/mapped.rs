//! Loading compiled code of a file that is open, in a process that can open none itself.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use object::{Object as _, ObjectSection as _};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use wasmtime::Engine;
use wasmtime::component::Component;

/// The section that is run.
const TEXT: &str = ".text";

/// As [`crate::deserialize`], from a file that is open: one that whoever opened it has held against its digest.
///
/// wasmtime maps files that it opens itself, and copies what it is given as bytes. Of a component that the system lets map
/// here, the copy gives way to the file: its pages are clean, so that the kernel may drop them where memory is short, and
/// those that nobody runs are never read.
///
/// # Errors
/// Where the file cannot be read, and as there.
pub fn deserialize_open(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    let code = read(file)
        .map_err(|error| wasmtime::Error::msg(format!("the file cannot be read: {error}")))?;
    #[expect(
        unsafe_code,
        reason = "wasmtime cannot check that bytes are its own unchanged output"
    )]
    // SAFETY: they are those of a file as `deserialize` takes it, by what is asked of the caller.
    let component = unsafe { Component::deserialize(engine, &code) }?;
    // Without it the component has its copy, and runs as well: where the file's system has nothing run, say.
    let _ = replace_copy(&component, file, &code);
    Ok(component)
}

/// The whole file, wherever others that have it open have read to.
fn read(file: &File) -> Result<Vec<u8>> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut content = vec![0; length];
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}

/// Has the file, which has this content, be where the component has its copy of it.
///
/// # Errors
/// Where that cannot be: the copy is there then.
fn replace_copy(component: &Component, file: &File, code: &[u8]) -> Result<()> {
    let text = text_of(code)?;
    let image = component.image_range();
    let page = page_size();
    let length = code.len().next_multiple_of(page);
    let (start, end) = (image.start.addr(), image.end.addr());
    let is_copy = start.is_multiple_of(page)
        && text.start.is_multiple_of(page)
        && end.saturating_sub(start) >= code.len()
        && end.saturating_sub(start) <= length;
    #[expect(unsafe_code, reason = "wasmtime gives the range as two pointers")]
    // SAFETY: the range is memory of the component, which nobody writes any more; `is_copy` holds its length.
    let is_same = is_copy && unsafe { std::slice::from_raw_parts(image.start, code.len()) } == code;
    if !is_same {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "what was loaded differs from the file",
        ));
    }
    let text = text.start..text.end.next_multiple_of(page).min(length);
    let (read, run) = (ProtFlags::READ, ProtFlags::READ | ProtFlags::EXEC);
    // Elsewhere first: once the copy has gone there is no way back.
    try_map(file, &text, run)?;
    for (part, rights) in [
        (0..text.start, read),
        (text.clone(), run),
        (text.end..length, read),
    ] {
        if part.is_empty() {
            continue;
        }
        let place = image.start.wrapping_add(part.start).cast_mut().cast();
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        #[expect(unsafe_code, reason = "memory is replaced that wasmtime has")]
        // SAFETY: the pages are those of the component's copy, of which `part` is within, and nothing runs in them yet:
        // nobody else has the component. They hold the same bytes afterwards with the rights that they had, so that
        // nobody can tell. wasmtime gives them back with the component as it would the copy. The file does not change:
        // it is the cache's, of mode 0600 in a folder of mode 0700 that the supervisor's user alone can reach, which
        // replaces files by renaming others and writes none in place.
        let mapped = unsafe { mmap(place, part.len(), rights, flags, file, part.start as u64) };
        if mapped.is_err() {
            // The kernel may have taken the copy away before it failed, and wasmtime would read from where it was.
            std::process::abort();
        }
    }
    Ok(())
}

/// The size of the system's pages, by what every program is told at its start: behind its walls a process can read it
/// nowhere else.
fn page_size() -> usize {
    #[expect(unsafe_code, reason = "a function of the C library")]
    // SAFETY: it takes a number, and reads what never changes.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // No system has smaller ones, nor larger ones than code is aligned to.
    usize::try_from(size).unwrap_or(64 << 10).max(4 << 10)
}

/// Whether the system maps this part of the file with these rights.
fn try_map(file: &File, part: &Range<usize>, rights: ProtFlags) -> Result<()> {
    #[expect(unsafe_code, reason = "a mapping")]
    // SAFETY: it is made where nothing is, and taken away before anybody knows of it.
    unsafe {
        let offset = part.start as u64;
        let place = std::ptr::null_mut();
        let mapped = mmap(place, part.len(), rights, MapFlags::PRIVATE, file, offset)?;
        munmap(mapped, part.len())?;
    }
    Ok(())
}

/// Where in the file the code is that is run.
fn text_of(code: &[u8]) -> Result<Range<usize>> {
    let invalid = |what: String| Error::new(ErrorKind::InvalidData, what);
    let file = object::File::parse(code).map_err(|error| invalid(error.to_string()))?;
    let range = file
        .section_by_name(TEXT)
        .and_then(|section| section.file_range());
    let (start, length) = range.ok_or_else(|| invalid(format!("it has no `{TEXT}`")))?;
    let end = start.checked_add(length);
    let [start, end] = [Some(start), end].map(|at| at.and_then(|at| usize::try_from(at).ok()));
    match (start, end) {
        (Some(start), Some(end)) if start < end && end <= code.len() => Ok(start..end),
        _ => Err(invalid(format!("its `{TEXT}` is not in it"))),
    }
}
