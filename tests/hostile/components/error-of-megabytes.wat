;; Fails, four times at once, with a message of 14 MB.
;; at-once: 4
;; answer: 502 plugin `error-of-megabytes` passed more than 2048 KiB to the host at once
;; answer: 503 `error-of-megabytes`

(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 216)))
  (memory.fill (i32.const 65536) (i32.const 1) (i32.const 14000000))
  (call $error (i32.const 500) (i32.const 65536) (i32.const 14000000)))
