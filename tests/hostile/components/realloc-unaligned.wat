;; Makes the host write a list of the request to a misaligned address.
;; answer: 500 plugin `realloc-unaligned` failed

(global $next (mut i32) (i32.const 32769))
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (global.set $next (i32.add (global.get $next) (i32.const 8192)))
  (global.get $next))
(func (export "handle") (type $handle) call $ok)
