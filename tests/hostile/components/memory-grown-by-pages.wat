;; Grows its memory by a page at a time, a million times, each of which the host has to account for.
;; answer: 200
;; answer: 504 `memory-grown-by-pages`
;; answer: 500 `memory-grown-by-pages`
;; held: growing is refused at the limit and costs its own CPU time

(func (export "handle") (type $handle)
  (local $left i32)
  (local.set $left (i32.const 1000000))
  (loop $more
    (drop (memory.grow (i32.const 1)))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $more (local.get $left)))
  call $ok)
