;; Writes a line that stands behind the end of its memory, to have the host read its own.
;; answer: 500 plugin `log-line-outside` failed

(import "log" "write" (func $write (param i32 i32 i32)))
(func (export "handle") (type $handle) (call $write (i32.const 2) (i32.const -100) (i32.const 99)) call $ok)
