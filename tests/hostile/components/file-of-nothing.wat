;; Is a file with nothing in it.
;; cut: 0
;; refused: it is empty

(component)
