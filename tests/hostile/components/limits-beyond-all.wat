;; Claims more memory and time than the host grants to any plugin.
;; manifest: limits = { memory_mib = 4000000000, cpu_ms = 4294967295 }
;; refused: memory_mib

(func (export "handle") (type $handle) call $ok)
