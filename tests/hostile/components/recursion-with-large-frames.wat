;; Calls itself with frames of many kilobytes, to step over the guard page of the stack.
;; answer: 500 plugin `recursion-with-large-frames` failed

(func $deeper (param i64) (result i64)
  (local <<4000 times i64 >>)
  <<4000 times (local.set %i (i64.add (local.get 0) (i64.const %i)))>>
  (drop (call $deeper (local.get 7)))
  (i64.const 0)
  <<4000 times (i64.add (local.get %i))>>)
(func (export "handle") (type $handle) (drop (call $deeper (i64.const 1))) call $ok)
