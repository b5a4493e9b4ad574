;; Calls itself until the stack, which belongs to the host, is exhausted.
;; answer: 500 plugin `recursion` failed

(func $deeper (param i64 i64 i64 i64) (result i64)
  (i64.add (i64.const 1) (call $deeper (local.get 3) (local.get 2) (local.get 1) (local.get 0))))
(func (export "handle") (type $handle)
  (drop (call $deeper (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)))
  call $ok)
