;; Says that its answer stands at an address that no answer can have.
;; answer: 500 plugin `answer-unaligned` failed

(func (export "handle") (type $handle) (drop (call $ok)) (i32.const 1025))
