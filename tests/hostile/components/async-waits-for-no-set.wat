;; Waits on a set of events that it does not have.
;; answer: 500 `async-waits-for-no-set`

(import "exports" "[task-return]handle" (func $return (param i32 i32 i32 i32 i32 i32 i32)))
(func (export "async-handle") (type $handle) (i32.const 0x7fffff2))
(func (export "callback") (param i32 i32 i32) (result i32) (i32.const 0))
