;; Claims to answer with four billion headers, which it does not have.
;; answer: 500 plugin `headers-uncountable` failed

(func (export "handle") (type $handle)
  (call $headers (i32.const 2048) (i32.const -1))
  call $ok)
