;; Is a component at first and then megabytes of bytes that mean nothing.
;; noise: 3000000
;; refused: not a WebAssembly component

(component)
