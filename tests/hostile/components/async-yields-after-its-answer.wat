;; Answers, and then keeps running forever, when nobody is waiting for it any more.
;; at-once: 8
;; answer: 200
;; answer: 503 `async-yields-after-its-answer`
;; answer: 504 `async-yields-after-its-answer`
;; held: the instance ends with its answer

(import "exports" "[task-return]handle" (func $return (param i32 i32 i32 i32 i32 i32 i32)))
(func (export "async-handle") (type $handle)
  (call $return (i32.const 0) (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  (i32.const 1))
(func (export "callback") (param i32 i32 i32) (result i32) (i32.const 1))
