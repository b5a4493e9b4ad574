;; Requests the state of the device in a loop, to keep the host busy rather than the plugin.
;; grants: device
;; limits: cpu_ms = 300, wall_ms = 20000
;; answer: 504 plugin `state-asked-for-ever` used more than its 300 ms of CPU time
;; answer: 500 plugin `state-asked-for-ever` needed more than its 16 MiB of memory

(import "device" "state" (func $state (param i32)))
(func (export "handle") (type $handle)
  (loop $again (global.set $free (i32.const 32768)) (call $state (i32.const 3000)) (br $again))
  unreachable)
