;; Fails, four times at once, with a message of 1.9 MB whose characters take up six times as much in JSON.
;; at-once: 4
;; answer: 500
;; answer: 503 `error-that-grows`
;; held: its message is cut to 4 KiB

(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 30)))
  (memory.fill (i32.const 65536) (i32.const 1) (i32.const 1900000))
  (call $error (i32.const 500) (i32.const 65536) (i32.const 1900000)))
