;; Has a hundred memories, of which each alone is small and all together are not.
;; refused:

(component (core module <<100 times (memory 100)>>))
