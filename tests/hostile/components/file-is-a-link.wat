;; Is a link to a file of the host that is no plugin, of which an error could tell something.
;; file: link /etc/passwd
;; refused: it is not WebAssembly

(component)
