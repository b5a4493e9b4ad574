;; Makes the host write the request beyond the end of the plugin's memory.
;; answer: 500 plugin `realloc-outside` failed

(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const -64))
(func (export "handle") (type $handle) call $ok)
