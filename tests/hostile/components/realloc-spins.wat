;; Loops forever when the host asks where to put the request.
;; limits: cpu_ms = 300, wall_ms = 20000
;; answer: 504 plugin `realloc-spins` used more than its 300 ms of CPU time

(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (loop $again (br $again)) unreachable)
(func (export "handle") (type $handle) call $ok)
