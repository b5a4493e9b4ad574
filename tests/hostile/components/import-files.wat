;; Imports the file system without having asked for it.
;; refused: wasi:filesystem/preopens

(component
  (import "wasi:filesystem/preopens@0.2.6" (instance (export "get-directories" (func)))))
