;; Has a function with a million local variables, written in a few bytes.
;; refused: locals

(component (core module (func (local <<60000 times i64 >>))))
