;; Claims that its answer is longer than it is, so that the client waits for bytes that never come.
;; answer: 200 ok
;; held: the host states the length of an answer

(data (i32.const 1200) "content-length")
(data (i32.const 1220) "99999999")
(func (export "handle") (type $handle)
  (call $answer-with-header (i32.const 1200) (i32.const 14) (i32.const 1220) (i32.const 8)))
