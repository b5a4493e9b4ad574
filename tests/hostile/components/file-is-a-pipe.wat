;; Is a pipe, which blocks its reader.
;; file: pipe
;; refused: it is not a plain file

(component)
