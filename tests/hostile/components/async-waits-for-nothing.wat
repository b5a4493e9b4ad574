;; Waits on an empty set of events.
;; answer: 504 `async-waits-for-nothing`
;; answer: 500 `async-waits-for-nothing`
;; limits: wall_ms = 500

(import "exports" "[task-return]handle" (func $return (param i32 i32 i32 i32 i32 i32 i32)))
(import "$root" "[waitable-set-new]" (func $set (result i32)))
(func (export "async-handle") (type $handle) (i32.or (i32.const 2) (i32.shl (call $set) (i32.const 4))))
(func (export "callback") (param i32 i32 i32) (result i32) (i32.const 0))
