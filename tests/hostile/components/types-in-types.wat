;; Has a type that is a list of lists of lists, five hundred times, to use up the stack of whoever reads it.
;; refused: type nesting is too deep

(component
  (type (list u8))
  <<500 times (type (list %i))>>
  (import "x:y/z@1.0.0" (instance (export "f" (func (param "x" (list u8)))))))
