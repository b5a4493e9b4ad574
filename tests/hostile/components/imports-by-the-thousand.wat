;; Imports a thousand interfaces at once, each of which has to be checked and listed.
;; refused: which no plugin gets
;; absent: x900:y/z

(component <<1000 times (import "x%i:y/z@1.0.0" (instance (export "f" (func))))>>)
