;; Is a link to a file of the host that is not a plugin, so that an error could reveal something about that file.
;; file: link /etc/passwd
;; refused: it is not WebAssembly

(component)
