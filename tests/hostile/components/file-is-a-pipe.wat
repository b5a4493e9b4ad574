;; Is a pipe, which whoever reads it waits for.
;; file: pipe
;; refused: it is not a file

(component)
