;; Has a hundred memories, each of which is small, but not all of them together.
;; refused:

(component (core module <<100 times (memory 100)>>))
