;; Calls a function from a table as if it had another type.
;; answer: 500 plugin `trap-indirect-call` failed

(table $table 1 funcref)
(elem (table $table) (i32.const 0) func $ok)
(type $other (func (param i64 i64) (result i64)))
(func (export "handle") (type $handle)
  (drop (call_indirect $table (type $other) (i64.const 1) (i64.const 2) (i32.const 0)))
  call $ok)
