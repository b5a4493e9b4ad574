;; Nests components as deeply as can be written, to exhaust the stack of the parser.
;; refused: its component exports neither `platform:supervisor/handler` nor

(component <<95 times (component >><<95 times )>>)
