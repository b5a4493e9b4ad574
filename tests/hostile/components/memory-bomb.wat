;; Requests memory until there is none left.
;; answer: 500 plugin `memory-bomb` needed more than its 16 MiB of memory

(func (export "handle") (type $handle)
  (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
  unreachable)
