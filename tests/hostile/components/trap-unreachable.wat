;; Does what it must never come to.
;; answer: 500 plugin `trap-unreachable` failed

(func (export "handle") (type $handle) unreachable)
