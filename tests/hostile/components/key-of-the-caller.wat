;; Answers with all headers and the query of the request, to obtain the caller's key.
;; answer: 200 accept
;; absent: Bearer
;; held: the key is removed from the request

(func (export "handle") (type $handle)
  ;; Everything that the host has written to its memory.
  (call $answer (i32.const 200) (i32.const 32768) (i32.const 8192)))
