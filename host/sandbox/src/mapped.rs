//! Loading compiled code from an open file, in a process that cannot open files itself.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use object::{Object as _, ObjectSection as _};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use wasmtime::Engine;
use wasmtime::component::Component;

/// The section with the executable code.
const TEXT: &str = ".text";

/// Like [`crate::deserialize`], but from an open file, which must have been checked against its digest when it was
/// opened.
///
/// wasmtime maps files that it opens itself, but copies bytes that it is given. If the system allows mapping the
/// component here, the file replaces the copy: the file's pages are clean, so the kernel can drop them if memory is
/// short, and those that are never run are never read.
///
/// # Errors
/// If the file cannot be read, and those of [`crate::deserialize`].
pub fn deserialize_open(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    let code = read(file)
        .map_err(|error| wasmtime::Error::msg(format!("the file cannot be read: {error}")))?;
    #[expect(
        unsafe_code,
        reason = "wasmtime cannot check that bytes are its own unchanged output"
    )]
    // SAFETY: they are the bytes of a file as `deserialize` accepts it; the caller is responsible for this.
    let component = unsafe { Component::deserialize(engine, &code) }?;
    // If this fails, the component runs from its copy just as well: for example if the file system does not allow
    // execution.
    let _ = replace_copy(&component, file, &code);
    Ok(component)
}

/// Reads the whole file, wherever the position of other users of the descriptor is.
fn read(file: &File) -> Result<Vec<u8>> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut content = vec![0; length];
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}

/// Maps the file, which has this content, over the component's copy of it.
///
/// # Errors
/// If this is not possible: the copy then stays.
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
    // SAFETY: the range is memory of the component, which nobody writes any more; `is_copy` guarantees its length.
    let is_same = is_copy && unsafe { std::slice::from_raw_parts(image.start, code.len()) } == code;
    if !is_same {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "what was loaded differs from the file",
        ));
    }
    let text = text.start..text.end.next_multiple_of(page).min(length);
    let (read, run) = (ProtFlags::READ, ProtFlags::READ | ProtFlags::EXEC);
    // First somewhere else: once the copy is gone, there is no way back.
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
        // SAFETY: the pages are those of the component's copy, which contains `part`, and nothing runs in them yet:
        // nobody else has the component. Afterwards they have the same bytes with the same access rights, so nobody can
        // tell the difference. wasmtime releases them with the component as it would release the copy. The file does
        // not change: it belongs to the cache, has mode 0600 in a folder of mode 0700 that only the supervisor's user
        // can reach, and the cache replaces files by renaming others and never writes one in place.
        let mapped = unsafe { mmap(place, part.len(), rights, flags, file, part.start as u64) };
        if mapped.is_err() {
            // The kernel may have removed the copy before it failed, and wasmtime would read from its place.
            std::process::abort();
        }
    }
    Ok(())
}

/// Returns the size of the system's pages from the data that every program receives at its start: behind its walls, a
/// process cannot read it anywhere else.
fn page_size() -> usize {
    #[expect(unsafe_code, reason = "a function of the C library")]
    // SAFETY: it takes a number, and reads a value that never changes.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // No system has smaller pages, or larger ones than the alignment of code.
    usize::try_from(size).unwrap_or(64 << 10).max(4 << 10)
}

/// Checks that the system maps this part of the file with these rights.
fn try_map(file: &File, part: &Range<usize>, rights: ProtFlags) -> Result<()> {
    #[expect(unsafe_code, reason = "a mapping")]
    // SAFETY: the mapping is created at a free address, and removed before anybody knows of it.
    unsafe {
        let offset = part.start as u64;
        let place = std::ptr::null_mut();
        let mapped = mmap(place, part.len(), rights, MapFlags::PRIVATE, file, offset)?;
        munmap(mapped, part.len())?;
    }
    Ok(())
}

/// Returns the range of the executable code in the file.
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
