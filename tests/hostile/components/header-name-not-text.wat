;; Uses bytes that are not text as the name of a header.
;; answer: 500 plugin `header-name-not-text` failed

(data (i32.const 1200) "\ff\fe\80")
(func (export "handle") (type $handle)
  (call $answer-with-header (i32.const 1200) (i32.const 3) (i32.const 1100) (i32.const 2)))
