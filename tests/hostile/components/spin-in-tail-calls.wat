;; Calls itself for ever in a tail call, which no stack ends.
;; refused: tail calls

(func $again return_call $again)
(func (export "handle") (type $handle) call $again unreachable)
