;; Makes the host write all parts of the request to one place, so that a list is also a text.
;; answer: 200 ok
;; answer: 500 plugin `realloc-overlapping` failed
;; held: the host never reads back what it wrote

(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 32768))
(func (export "handle") (type $handle) call $ok)
