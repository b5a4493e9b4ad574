;; Computes with instructions whose results differ between processors, to find out which one it runs on.
;; refused: relaxed SIMD

(component (core module (func (param v128 v128) (result v128)
  (i8x16.relaxed_swizzle (local.get 0) (local.get 1)))))
