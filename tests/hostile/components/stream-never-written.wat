;; Answers with a stream, keeps its writing end, and never writes.
;; answer: 200
;; answer: 504 `stream-never-written`
;; reader: stays
;; held: readers leave when they like, and the instance ends with them

(import "exports" "[stream-new-0]handle" (func $new (result i64)))
(import "exports" "[task-return]handle" (func $return (param i32 i32 i32 i32 i32 i32 i32)))
(import "$root" "[waitable-set-new]" (func $set (result i32)))
(func (export "async-handle") (type $handle)
  (call $return (i32.const 0) (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 2)
    (i32.wrap_i64 (call $new)) (i32.const 0))
  (i32.const 0))
(func (export "callback") (param i32 i32 i32) (result i32) (i32.const 0))
