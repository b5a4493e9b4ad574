;; Writes a line of a level that there is none of.
;; answer: 500 plugin `log-line-of-no-level` failed

(import "log" "write" (func $write (param i32 i32 i32)))
(func (export "handle") (type $handle) (call $write (i32.const 99) (i32.const 1100) (i32.const 2)) call $ok)
