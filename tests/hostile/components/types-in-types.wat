;; Has a type of lists nested five hundred deep, to exhaust the stack of the parser.
;; refused: type nesting is too deep

(component
  (type (list u8))
  <<500 times (type (list %i))>>
  (import "x:y/z@1.0.0" (instance (export "f" (func (param "x" (list u8)))))))
