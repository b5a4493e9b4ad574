;; Claims that its answer is at a misaligned address.
;; answer: 500 plugin `answer-unaligned` failed

(func (export "handle") (type $handle) (drop (call $ok)) (i32.const 1025))
