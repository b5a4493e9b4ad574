//! Settings of the program's heap, applied by `main` before anything else.

/// Blocks of this many bytes are allocated from the system, and returned to it as soon as they are free.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 1 << 20;

/// Makes large blocks be returned to the system as soon as they are free. By default, glibc treats the first one that
/// is freed as a sign that such blocks are frequent, and keeps the next ones, one or more for each thread: the hashes
/// of passwords by themselves would leave hundreds of megabytes behind.
///
/// Free memory at the end of a heap is kept, up to twice as much, as glibc would do if it chose the size of large
/// blocks itself. If a program chooses the size, glibc keeps only 128 KiB: the states of devices, which need about as
/// much each, would then be returned and faulted in again for every poll, and a changed poll would take 1.6 times as
/// long.
pub(crate) fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a setting of the C library")]
    // SAFETY: it takes two numbers, and `main` calls this before there is another thread.
    unsafe {
        // If this is refused, memory is used as before.
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGE);
    }
}
