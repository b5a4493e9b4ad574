;; Ends its task without ever having answered.
;; answer: 500 `async-never-returns`

(import "exports" "[task-return]handle" (func $return (param i32 i32 i32 i32 i32 i32 i32)))
(func (export "async-handle") (type $handle) (i32.const 0))
(func (export "callback") (param i32 i32 i32) (result i32) (i32.const 0))
