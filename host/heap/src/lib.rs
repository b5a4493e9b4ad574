//! How the heap of a program is kept that runs for long and is to be small.

#![warn(missing_docs)]

/// Heaps between which threads share.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;

/// Has all threads share few heaps. glibc gives each thread one of its own, which keeps what the thread
/// once freed: on an idle device a quarter of its anonymous memory.
pub fn share_heaps() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a setting of the C library")]
    // SAFETY: it takes two numbers, and `main` calls this before there is another thread.
    unsafe {
        // Where it is refused, memory is as it would have been.
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
    }
}

/// Gives back to the system what no heap uses any more. By itself glibc gives back only what is at a heap's
/// end, and a large body leaves holes.
pub fn return_unused() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a function of the C library that nothing wraps")]
    // SAFETY: it takes a number of bytes to keep, and may be called by any thread at any time.
    unsafe {
        // Whether there was something to give back is no matter.
        libc::malloc_trim(0);
    }
}
