;; Has a record of two records of two records, thirty times, which would have a billion fields if written out.
;; refused: effective type size exceeds

(component
  (type (record (field "a" u8)))
  <<30 times (type (record (field "a" %i) (field "b" %i)))>>
  (import "f" (func (param "x" 30))))
