;; Answers with a stream that it never created, by a number that could be the host's own.
;; answer: 500 `stream-never-made`

(func (export "handle") (type $handle)
  (drop (call $ok))
  (i32.store8 (i32.const 1040) (i32.const 2))
  (i32.store (i32.const 1044) (i32.const 7))
  (i32.const 1024))
