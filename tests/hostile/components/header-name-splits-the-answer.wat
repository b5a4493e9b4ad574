;; Puts a line break into the name of a header.
;; answer: 502 plugin `header-name-splits-the-answer` gave a bad answer

(data (i32.const 1200) "a: b\r\nx")
(func (export "handle") (type $handle)
  (call $answer-with-header (i32.const 1200) (i32.const 7) (i32.const 1100) (i32.const 2)))
