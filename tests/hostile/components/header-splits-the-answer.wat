;; Puts the end of its answer and the beginning of another one into a header.
;; answer: 502 plugin `header-splits-the-answer` gave a bad answer
;; absent: FORGED

(data (i32.const 1200) "x-a")
(data (i32.const 1210) "b\r\n\r\nHTTP/1.1 200 OK\r\nset-cookie: FORGED\r\n\r\n")
(func (export "handle") (type $handle)
  (call $answer-with-header (i32.const 1200) (i32.const 3) (i32.const 1210) (i32.const 47)))
