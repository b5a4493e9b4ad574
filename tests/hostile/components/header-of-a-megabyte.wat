;; Answers with one header of a megabyte.
;; answer: 502 plugin `header-of-a-megabyte` gave a bad answer

(data (i32.const 1200) "x-long")
(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 20)))
  (memory.fill (i32.const 65536) (i32.const 120) (i32.const 1000000))
  (call $answer-with-header (i32.const 1200) (i32.const 6) (i32.const 65536) (i32.const 1000000)))
