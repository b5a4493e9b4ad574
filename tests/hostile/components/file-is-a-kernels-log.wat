;; Is a link to the kernel's log, which looks like a plain file of root and makes its reader wait for the next line.
;; file: link /proc/kmsg
;; refused: it cannot be read

(component)
