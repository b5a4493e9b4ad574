;; Loops forever in as many simultaneous calls as clients make.
;; at-once: 16
;; limits: cpu_ms = 100, wall_ms = 20000
;; answer: 504 plugin `spin-at-once` used more than its 100 ms of CPU time
;; answer: 503 there is no room for plugin `spin-at-once`

(func (export "handle") (type $handle) (loop $again (br $again)) unreachable)
