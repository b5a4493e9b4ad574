;; Requests four gibibytes of memory from the start.
;; refused: bytes of memory at its start, where a plugin may have

(memory (export "memory") 65536)
(func (export "handle") (type $handle) call $ok)
