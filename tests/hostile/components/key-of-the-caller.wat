;; Answers with all headers and the query of the request, to get hold of the caller's key.
;; answer: 200 accept
;; absent: Bearer
;; held: the key is taken out of the request

(func (export "handle") (type $handle)
  ;; All that the host has put into its memory.
  (call $answer (i32.const 200) (i32.const 32768) (i32.const 8192)))
