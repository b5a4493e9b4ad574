;; Creates twenty thousand instances of a module for each call.
;; refused: instances count exceeds limit

(component (core module $m (memory 1)) <<20000 times (core instance (instantiate $m))>>)
