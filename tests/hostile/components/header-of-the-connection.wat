;; States how its answer is transferred, so that its content is read as something else (smuggling).
;; answer: 502 plugins may not set the header `transfer-encoding`

(data (i32.const 1200) "transfer-encoding")
(data (i32.const 1220) "chunked")
(func (export "handle") (type $handle)
  (call $answer-with-header (i32.const 1200) (i32.const 17) (i32.const 1220) (i32.const 7)))
