;; Is a file with nothing in it.
;; cut: 0
;; refused: not a WebAssembly component

(component)
