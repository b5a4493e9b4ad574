;; Begins as a component, and continues with megabytes of meaningless bytes.
;; noise: 3000000
;; refused: it is cut off or damaged at byte

(component)
