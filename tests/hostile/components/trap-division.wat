;; Divides by zero, to which processors respond with a signal.
;; answer: 500 plugin `trap-division` failed

(func (export "handle") (type $handle) (i32.div_s (i32.const 1) (i32.const 0)))
