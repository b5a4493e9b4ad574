;; Has a memory with 64-bit addresses, which no reservation could hold.
;; refused: 64-bit memories

(component (core module
  (memory $large i64 1)
  (func (result i64) (i64.load $large (i64.const 0x7fffffffffff)))))
