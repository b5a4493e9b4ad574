;; Writes a line that lies beyond the end of its memory, to make the host read its own memory.
;; answer: 500 plugin `log-line-outside` failed

(import "log" "write" (func $write (param i32 i32 i32)))
(func (export "handle") (type $handle) (call $write (i32.const 2) (i32.const -100) (i32.const 99)) call $ok)
