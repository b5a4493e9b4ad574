;; Writes a line with a level that does not exist.
;; answer: 500 plugin `log-line-of-no-level` failed

(import "log" "write" (func $write (param i32 i32 i32)))
(func (export "handle") (type $handle) (call $write (i32.const 99) (i32.const 1100) (i32.const 2)) call $ok)
