;; Stores the longest value, begins to read it ten thousand times at once, and takes none of the answers.
;; grants: store
;; limits: cpu_ms = 2000, wall_ms = 10000
;; at-once: 4
;; answer: 500 plugin `answers-begun-by-the-thousand` failed

(import "store" "set" (func $set (param i32 i32 i32 i32 i32)))
(import "store" "[async-lower]get" (func $get (param i32 i32 i32) (result i32)))
(func (export "handle") (type $handle)
  (local $left i32)
  (drop (memory.grow (i32.const 4)))
  (call $set (i32.const 1100) (i32.const 2) (i32.const 65536) (i32.const 65536) (i32.const 3000))
  (local.set $left (i32.const 10000))
  (loop $more
    (drop (call $get (i32.const 1100) (i32.const 2) (i32.const 3000)))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $more (local.get $left)))
  call $ok)
