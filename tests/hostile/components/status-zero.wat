;; Answers with the status 0.
;; answer: 502 the status 0 is not between 200 and 599

(func (export "handle") (type $handle) (call $answer (i32.const 0) (i32.const 1100) (i32.const 2)))
