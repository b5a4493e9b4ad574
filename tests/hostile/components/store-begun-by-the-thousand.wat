;; Begins more than a hundred small writes at once, then nine hundred of a megabyte each, and awaits none of them.
;; grants: store
;; limits: cpu_ms = 2000, wall_ms = 10000
;; at-once: 4
;; answer: 503 no room for plugin `store-begun-by-the-thousand` now: its calls to the host may have 4 MiB of arguments

(import "store" "[async-lower]set" (func $set (param i32 i32 i32 i32 i32) (result i32)))
(func $begin (param $left i32) (param $length i32)
  (loop $more
    (drop (call $set (i32.const 1100) (i32.const 2) (i32.const 65536) (local.get $length) (i32.const 3000)))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $more (local.get $left))))
(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 20)))
  (call $begin (i32.const 120) (i32.const 10))
  (call $begin (i32.const 900) (i32.const 1000000))
  call $ok)
