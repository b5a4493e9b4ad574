;; Loops forever, so that nothing else gets a turn on the processor.
;; limits: cpu_ms = 300, wall_ms = 20000
;; answer: 504 plugin `spin` used more than its 300 ms of CPU time

(func (export "handle") (type $handle) (loop $again (br $again)) unreachable)
