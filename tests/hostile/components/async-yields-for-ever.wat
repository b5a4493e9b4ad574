;; Yields forever: does nothing each time, and asks to be called again at once.
;; answer: 504 `async-yields-for-ever`

(import "exports" "[task-return]handle" (func $return (param i32 i32 i32 i32 i32 i32 i32)))
(func (export "async-handle") (type $handle) (i32.const 1))
(func (export "callback") (param i32 i32 i32) (result i32) (i32.const 1))
