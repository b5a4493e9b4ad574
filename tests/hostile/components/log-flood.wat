;; Writes a hundred thousand lines to the log in one call.
;; answer: 200
;; answer: 504 `log-flood`
;; log: plugin="log-flood"
;; held: lines beyond a limit are counted and not written

(import "log" "write" (func $write (param i32 i32 i32)))
(func (export "handle") (type $handle)
  (local $left i32)
  (local.set $left (i32.const 100000))
  (loop $more
    (call $write (i32.const 4) (i32.const 1100) (i32.const 2))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $more (local.get $left)))
  call $ok)
