;; Is a pipe, which whoever reads it waits for.
;; file: pipe
;; refused: it is no file

(component)
