;; Writes one line of a megabyte to the log.
;; answer: 200
;; log: log-line-of-a-megabyte
;; absent: <<5000 times x>>

(import "log" "write" (func $write (param i32 i32 i32)))
(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 20)))
  (memory.fill (i32.const 65536) (i32.const 120) (i32.const 1000000))
  (call $write (i32.const 2) (i32.const 65536) (i32.const 1000000))
  call $ok)
