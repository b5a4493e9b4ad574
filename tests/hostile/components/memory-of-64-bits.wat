;; Has a memory whose addresses have 64 bits, and which no reservation could hold.
;; refused: 64-bit memories

(component (core module
  (memory $large i64 1)
  (func (result i64) (i64.load $large (i64.const 0x7fffffffffff)))))
