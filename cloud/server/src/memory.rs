//! How the program's heap is kept: called first of all by `main`.

/// Blocks of so many bytes are the system's own, and its again at once when they are free.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 1 << 20;

/// Has large blocks be given back to the system as soon as they are free. glibc otherwise takes the first one that
/// is freed for a sign that such blocks come often, and keeps the next ones, one or more for each thread: hashes of
/// passwords alone would leave hundreds of megabytes behind.
///
/// What is free at the end of a heap stays up to twice as much, as glibc would have it if it chose the size of large
/// blocks itself. Once a program chooses it, 128 KiB stay: with that the states of devices, which take about as much
/// each, are given back and faulted in again for every poll, and a changed poll costs 1.6 times the time.
pub(crate) fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a setting of the C library")]
    // SAFETY: it takes two numbers, and `main` calls this before there is another thread.
    unsafe {
        // Where it is refused, memory is as it would have been.
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGE);
    }
}
