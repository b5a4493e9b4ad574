;; Has the host write all parts of the request into one place, so that what is a list is a text as well.
;; answer: 200 ok
;; answer: 500 plugin `realloc-overlapping` failed
;; held: the host reads nothing back of what it wrote

(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 32768))
(func (export "handle") (type $handle) call $ok)
