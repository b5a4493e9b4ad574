;; Has as many components in each other as can be written, to use up the stack of whoever reads them.
;; refused: its component exports neither `platform:supervisor/handler` nor

(component <<95 times (component >><<95 times )>>)
