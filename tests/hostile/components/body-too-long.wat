;; Answers with a body that is longer than its limit, in many calls at once.
;; at-once: 8
;; answer: 502 plugin `body-too-long` gave a bad answer
;; answer: 502 plugin `body-too-long` passed more than 2048 KiB to the host at once
;; answer: 503 `body-too-long`

(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 200)))
  (call $answer (i32.const 200) (i32.const 0) (i32.const 13000000)))
