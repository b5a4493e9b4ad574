;; Answers with a body that extends beyond the end of its memory.
;; answer: 500 plugin `body-outside` failed

(func (export "handle") (type $handle) (call $answer (i32.const 200) (i32.const 1024) (i32.const -1)))
