;; Calls the host while the host is about to write the request into the plugin's memory.
;; answer: 500 plugin `realloc-calls-the-host` failed

(import "log" "write" (func $write (param i32 i32 i32)))
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (call $write (i32.const 2) (i32.const 1100) (i32.const 2))
  (i32.const 32768))
(func (export "handle") (type $handle) call $ok)
