;; Fills and copies megabytes in single instructions, and can be interrupted only between them.
;; limits: cpu_ms = 300, wall_ms = 20000
;; answer: 504 plugin `spin-in-bulk` used more than its 300 ms of CPU time

(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 128)))
  (loop $again
    (memory.fill (i32.const 65536) (i32.const 7) (i32.const 8000000))
    (memory.copy (i32.const 65537) (i32.const 65536) (i32.const 7000000))
    (br $again))
  unreachable)
