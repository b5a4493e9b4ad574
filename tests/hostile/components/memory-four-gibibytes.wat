;; Requests four gibibytes of memory from the start.
;; refused: bytes of memory at its start, but a plugin may have at most

(memory (export "memory") 65536)
(func (export "handle") (type $handle) call $ok)
