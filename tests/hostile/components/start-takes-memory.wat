;; Takes all the memory that it may have as soon as an instance is prepared, and keeps it before any call.
;; at-once: 6
;; answer: 200
;; answer: 500 plugin `start-takes-memory` needed more than its 16 MiB of memory
;; answer: 503 `start-takes-memory`
;; held: what is prepared in advance is limited

(func $start (drop (memory.grow (i32.const 250)))
  (memory.fill (i32.const 65536) (i32.const 1) (i32.const 16000000)))
(start $start)
(func (export "handle") (type $handle) call $ok)
