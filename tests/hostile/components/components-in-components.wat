;; Has as many components in each other as can be written, to use up the stack of whoever reads them.
;; refused: its component does not export `platform:supervisor/handler`

(component <<95 times (component >><<95 times )>>)
