;; Is a folder, which cannot be read like a file.
;; file: folder
;; refused: it is not a plain file

(component)
