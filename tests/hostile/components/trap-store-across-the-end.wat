;; Writes across the end of its memory, at every position of the last page.
;; answer: 500 plugin `trap-store-across-the-end` failed

(func (export "handle") (type $handle)
  (local $at i32)
  (local.set $at (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4096)))
  (loop $on
    (i64.store (local.get $at) (i64.const -1))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (br $on))
  unreachable)
