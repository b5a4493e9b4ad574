;; Fills all memory that a call may have in many calls at once, and holds it there.
;; at-once: 24
;; answer: 200
;; answer: 503 there is no room for plugin `memory-held-by-all`
;; answer: 500 plugin `memory-held-by-all` needed more than its 16 MiB of memory
;; held: all calls together have a bound on memory, which clients are told of

(import "timer" "sleep" (func $sleep (param i32)))
(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 240)))
  (memory.fill (i32.const 65536) (i32.const 1) (i32.const 15000000))
  (call $sleep (i32.const 300))
  call $ok)
