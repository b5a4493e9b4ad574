;; Has a hundred thousand blocks in each other, to use up the stack of whoever compiles it.
;; refused: its component exports neither `platform:supervisor/handler` nor

(component (core module (func <<100000 times block >><<100000 times end >>)))
