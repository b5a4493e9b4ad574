;; Executes an instruction that must never be reached.
;; answer: 500 plugin `trap-unreachable` failed

(func (export "handle") (type $handle) unreachable)
