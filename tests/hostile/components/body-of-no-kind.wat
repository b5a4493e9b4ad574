;; Answers with a body that is of none of the three kinds.
;; answer: 500 plugin `body-of-no-kind` failed

(func (export "handle") (type $handle) (drop (call $ok)) (i32.store8 (i32.const 1040) (i32.const 200)) (i32.const 1024))
