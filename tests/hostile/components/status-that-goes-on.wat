;; Answers with status 101, after which a connection no longer speaks HTTP.
;; answer: 502 the status 101 is not between 200 and 599

(func (export "handle") (type $handle) (call $answer (i32.const 101) (i32.const 1100) (i32.const 2)))
