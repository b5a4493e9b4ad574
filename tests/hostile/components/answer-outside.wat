;; Claims that its answer lies beyond the end of its memory.
;; answer: 500 plugin `answer-outside` failed

(func (export "handle") (type $handle) (i32.const -32))
