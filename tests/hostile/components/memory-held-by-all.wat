;; Fills all the memory that a call may have, in many calls at once, and keeps it.
;; at-once: 24
;; answer: 200
;; answer: 503 there is no room for plugin `memory-held-by-all`
;; answer: 500 plugin `memory-held-by-all` needed more than its 16 MiB of memory
;; held: all calls together have a memory limit, which is reported to clients

(import "timer" "sleep" (func $sleep (param i32)))
(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 240)))
  (memory.fill (i32.const 65536) (i32.const 1) (i32.const 15000000))
  (call $sleep (i32.const 300))
  call $ok)
