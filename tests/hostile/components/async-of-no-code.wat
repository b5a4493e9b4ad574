;; Returns a code that has no meaning to the host.
;; answer: 500 `async-of-no-code`

(import "exports" "[task-return]handle" (func $return (param i32 i32 i32 i32 i32 i32 i32)))
(func (export "async-handle") (type $handle) (i32.const 15))
(func (export "callback") (param i32 i32 i32) (result i32) (i32.const 15))
