;; Imports the file system, which it has not asked for.
;; refused: wasi:filesystem/preopens

(component
  (import "wasi:filesystem/preopens@0.2.6" (instance (export "get-directories" (func)))))
