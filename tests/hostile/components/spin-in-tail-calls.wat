;; Calls itself forever in a tail call, which never exhausts the stack.
;; refused: tail calls

(func $again return_call $again)
(func (export "handle") (type $handle) call $again unreachable)
