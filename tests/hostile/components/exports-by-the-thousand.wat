;; Exports fifty thousand functions in addition to the one that is called.
;; refused: its component exports neither `platform:supervisor/handler` nor

(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
  (func $f (canon lift (core func $i "f")))
  <<50000 times (export "f%i" (func $f))>>)
