;; Is a component at first and then megabytes of bytes that mean nothing.
;; noise: 3000000
;; refused: it is cut off or damaged at byte

(component)
