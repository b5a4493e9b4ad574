;; Returns something that is neither an answer nor an error.
;; answer: 500 plugin `answer-of-no-kind` failed

(func (export "handle") (type $handle) (drop (call $ok)) (i32.store8 (i32.const 1024) (i32.const 7)) (i32.const 1024))
