;; Answers with as many headers as the host accepts from a plugin at all, sixteen times at once.
;; at-once: 16
;; answer: 502 plugin `headers-forty-thousand` gave a bad answer: 40000 headers, more than 64
;; answer: 503 `headers-forty-thousand`
;; answer: 504 `headers-forty-thousand`

(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 20)))
  (call $headers (i32.const 65536) (i32.const 40000))
  call $ok)
