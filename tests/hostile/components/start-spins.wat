;; Loops in its start function, before anybody has called it.
;; answer: 504 `start-spins`
;; answer: 500 `start-spins`

(func $start (loop $again (br $again)))
(start $start)
(func (export "handle") (type $handle) call $ok)
