//! Settings of the heap for a small program that runs for a long time.

#![warn(missing_docs)]

/// The number of heaps that threads share.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;

/// Makes all threads share a few heaps. glibc gives each thread its own, which keeps the memory that the
/// thread has freed: on an idle device, a quarter of its anonymous memory.
pub fn share_heaps() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a setting of the C library")]
    // SAFETY: it takes two numbers, and `main` calls this before there is another thread.
    unsafe {
        // If this is refused, memory is used as before.
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
    }
}

/// Returns memory that no heap uses any more to the system. By itself glibc returns only the end of a heap,
/// and a large body leaves holes.
pub fn return_unused() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a function of the C library that nothing wraps")]
    // SAFETY: it takes a number of bytes to keep, and may be called by any thread at any time.
    unsafe {
        // It does not matter whether there was anything to return.
        libc::malloc_trim(0);
    }
}
