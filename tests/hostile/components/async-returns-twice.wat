;; Answers twice, so that the host could mistake the second answer for that of another request.
;; answer: 500 `async-returns-twice`
;; answer: 200
;; held: the first answer counts

(import "exports" "[task-return]handle" (func $return (param i32 i32 i32 i32 i32 i32 i32)))
(func (export "async-handle") (type $handle)
  (call $return (i32.const 0) (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  (call $return (i32.const 0) (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  (i32.const 0))
(func (export "callback") (param i32 i32 i32) (result i32) (i32.const 0))
