;; Imports a thousand things at once, each of which is to be looked at and listed.
;; refused: which no plugin gets
;; absent: x900:y/z

(component <<1000 times (import "x%i:y/z@1.0.0" (instance (export "f" (func))))>>)
