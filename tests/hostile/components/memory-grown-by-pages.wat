;; Grows its memory one page at a time, a million times, and the host has to account for each page.
;; answer: 200
;; answer: 504 `memory-grown-by-pages`
;; answer: 500 `memory-grown-by-pages`
;; held: growth is refused at the limit, and costs the plugin's own CPU time

(func (export "handle") (type $handle)
  (local $left i32)
  (local.set $left (i32.const 1000000))
  (loop $more
    (drop (memory.grow (i32.const 1)))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $more (local.get $left)))
  call $ok)
