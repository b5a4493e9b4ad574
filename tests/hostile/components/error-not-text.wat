;; Fails with a message of bytes that are not text.
;; answer: 500 plugin `error-not-text` failed

(data (i32.const 1200) "\c0\80\f5\ff")
(func (export "handle") (type $handle) (call $error (i32.const 500) (i32.const 1200) (i32.const 4)))
