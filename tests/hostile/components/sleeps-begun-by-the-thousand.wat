;; Starts ten thousand waits at once and awaits none of them.
;; answer: 500 plugin `sleeps-begun-by-the-thousand` failed

(import "timer" "[async-lower]sleep" (func $sleep (param i32) (result i32)))
(func (export "handle") (type $handle)
  (local $left i32)
  (local.set $left (i32.const 10000))
  (loop $more
    (drop (call $sleep (i32.const -1)))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $more (local.get $left)))
  call $ok)
