;; Nests a hundred thousand blocks, to exhaust the stack of the compiler.
;; refused: its component exports neither `platform:supervisor/handler` nor

(component (core module (func <<100000 times block >><<100000 times end >>)))
