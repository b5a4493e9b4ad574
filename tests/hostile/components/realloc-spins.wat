;; Loops forever when the host asks where to put the request.
;; answer: 504 plugin `realloc-spins` used more than its 300 ms of CPU time

(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (loop $again (br $again)) unreachable)
(func (export "handle") (type $handle) call $ok)
