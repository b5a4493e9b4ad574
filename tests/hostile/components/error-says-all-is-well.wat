;; Fails with a status that means success.
;; answer: 500
;; held: such a status is treated as 500

(func (export "handle") (type $handle) (call $error (i32.const 200) (i32.const 1100) (i32.const 2)))
