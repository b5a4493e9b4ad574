;; Wants four gibibytes of memory from the beginning.
;; refused: bytes of memory at its start, where a plugin may have

(memory (export "memory") 65536)
(func (export "handle") (type $handle) call $ok)
