;; Has a function with sixty thousand local variables, declared in a few bytes.
;; refused: locals

(component (core module (func (local <<60000 times i64 >>))))
