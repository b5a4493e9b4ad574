;; Is a folder, which cannot be read as a file is.
;; file: folder
;; refused: it is not a file

(component)
