;; Answers, sixteen times at once, with 300,000 empty headers, each of which costs the host more than the plugin.
;; at-once: 16
;; answer: 502 plugin `headers-three-hundred-thousand` gave a bad answer
;; answer: 502 plugin `headers-three-hundred-thousand` passed more than 2048 KiB to the host at once
;; answer: 503 `headers-three-hundred-thousand`
;; answer: 504 `headers-three-hundred-thousand`

(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 100)))
  (call $headers (i32.const 65536) (i32.const 300000))
  call $ok)
