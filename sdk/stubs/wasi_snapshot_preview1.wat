;; Implements the functions of WASI preview 1 that a language's runtime calls, in place of the adapter to WASI 0.2. A
;; component built with it imports no WASI, so the plugin needs no grant for a clock or for files that it does not use.
;; There are no arguments, variables, files or folders. Data written to a file is discarded, the clock stands still, and
;; there are no random bytes. For plugins that request none of `clock`, `random` and `files`; `core_module.rs` lists the
;; functions that other plugins take from here.
(module
  (import "env" "memory" (memory 0))

  ;; 8 is EBADF, 52 is ENOSYS, 76 is ENOTCAPABLE.
  (func (export "args_get") (param i32 i32) (result i32) i32.const 0)
  (func (export "args_sizes_get") (param $count i32) (param $size i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $size) (i32.const 0))
    i32.const 0)
  (func (export "environ_get") (param i32 i32) (result i32) i32.const 0)
  (func (export "environ_sizes_get") (param $count i32) (param $size i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $size) (i32.const 0))
    i32.const 0)
  (func (export "clock_res_get") (param $clock i32) (param $into i32) (result i32)
    (i64.store (local.get $into) (i64.const 1000000))
    i32.const 0)
  (func (export "clock_time_get") (param $clock i32) (param $precision i64) (param $into i32) (result i32)
    ;; Not 0, which Go interprets as a missing clock.
    (i64.store (local.get $into) (i64.const 1000000))
    i32.const 0)
  ;; Go's garbage collector stops the adapter's clock while it allocates for the host.
  (func (export "adapter_monotonic_clock_set_paused") (param i32))
  ;; Bytes that are the same in every plugin would be keys that everybody knows. Go starts without random bytes.
  (func (export "random_get") (param i32 i32) (result i32) i32.const 76)
  (func (export "sched_yield") (result i32) i32.const 0)
  (func (export "proc_exit") (param i32) unreachable)
  ;; Once a plugin in Go has used a timer, its garbage collector polls without waiting: one subscription, to the clock, with
  ;; the time-out 0. Then nothing has happened. Waiting is an error, because the clock stands still.
  (func (export "poll_oneoff") (param $subscriptions i32) (param $into i32) (param $count i32) (param $events i32) (result i32)
    (if (i32.or
          (i32.ne (local.get $count) (i32.const 1))
          (i32.or
            (i32.load8_u offset=8 (local.get $subscriptions))
            (i64.ne (i64.load offset=24 (local.get $subscriptions)) (i64.const 0))))
      (then (return (i32.const 52))))
    (i32.store (local.get $events) (i32.const 0))
    i32.const 0)

  (func (export "fd_write") (param $file i32) (param $pieces i32) (param $count i32) (param $written i32) (result i32)
    (local $sum i32)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=4 (local.get $pieces))))
        (local.set $pieces (i32.add (local.get $pieces) (i32.const 8)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))
    (i32.store (local.get $written) (local.get $sum))
    i32.const 0)
  (func (export "fd_read") (param $file i32) (param $pieces i32) (param $count i32) (param $read i32) (result i32)
    (i32.store (local.get $read) (i32.const 0))
    i32.const 0)
  (func (export "fd_close") (param i32) (result i32) i32.const 0)
  (func (export "fd_fdstat_get") (param i32 i32) (result i32) i32.const 8)
  (func (export "fd_fdstat_set_flags") (param i32 i32) (result i32) i32.const 8)
  (func (export "fd_filestat_get") (param i32 i32) (result i32) i32.const 8)
  (func (export "fd_filestat_set_size") (param i32 i64) (result i32) i32.const 8)
  (func (export "fd_pread") (param i32 i32 i32 i64 i32) (result i32) i32.const 8)
  (func (export "fd_pwrite") (param i32 i32 i32 i64 i32) (result i32) i32.const 8)
  (func (export "fd_prestat_get") (param i32 i32) (result i32) i32.const 8)
  (func (export "fd_prestat_dir_name") (param i32 i32 i32) (result i32) i32.const 8)
  (func (export "fd_readdir") (param i32 i32 i32 i64 i32) (result i32) i32.const 8)
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) i32.const 8)
  (func (export "fd_sync") (param i32) (result i32) i32.const 8)
  (func (export "fd_tell") (param i32 i32) (result i32) i32.const 8)
  (func (export "path_create_directory") (param i32 i32 i32) (result i32) i32.const 8)
  (func (export "path_filestat_get") (param i32 i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "path_filestat_set_times") (param i32 i32 i32 i32 i64 i64 i32) (result i32) i32.const 8)
  (func (export "path_link") (param i32 i32 i32 i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "path_open") (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32) i32.const 8)
  (func (export "path_readlink") (param i32 i32 i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "path_remove_directory") (param i32 i32 i32) (result i32) i32.const 8)
  (func (export "path_rename") (param i32 i32 i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "path_symlink") (param i32 i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "path_unlink_file") (param i32 i32 i32) (result i32) i32.const 8)
  (func (export "sock_accept") (param i32 i32 i32) (result i32) i32.const 8)
  (func (export "sock_recv") (param i32 i32 i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "sock_send") (param i32 i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "sock_shutdown") (param i32 i32) (result i32) i32.const 8))
