;; Answers with a stream that it fills forever, to a caller that stays but does not read.
;; at-once: 8
;; answer: 200
;; answer: 503 `stream-unread`
;; answer: 504 `stream-unread`
;; reader: stays
;; held: it waits while nobody reads, and ends when its reader leaves

(import "exports" "[stream-new-0]handle" (func $new (result i64)))
(import "exports" "[async-lower][stream-write-0]handle" (func $write (param i32 i32 i32) (result i32)))
(import "exports" "[task-return]handle" (func $return (param i32 i32 i32 i32 i32 i32 i32)))
(import "$root" "[waitable-set-new]" (func $set (result i32)))
(import "$root" "[waitable-join]" (func $join (param i32 i32)))
(global $end (mut i32) (i32.const 0))
(global $events (mut i32) (i32.const 0))
(func $fill (result i32)
  ;; Until a write would have to wait, which returns -1.
  (loop $on (br_if $on (i32.ne (i32.const -1)
    (call $write (global.get $end) (i32.const 0) (i32.const 60000)))))
  (i32.or (i32.const 2) (i32.shl (global.get $events) (i32.const 4))))
(func (export "async-handle") (type $handle)
  (local $both i64)
  (local.set $both (call $new))
  (global.set $end (i32.wrap_i64 (i64.shr_u (local.get $both) (i64.const 32))))
  (global.set $events (call $set))
  (call $join (global.get $end) (global.get $events))
  (call $return (i32.const 0) (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 2)
    (i32.wrap_i64 (local.get $both)) (i32.const 0))
  call $fill)
(func (export "callback") (param i32 i32 i32) (result i32) call $fill)
