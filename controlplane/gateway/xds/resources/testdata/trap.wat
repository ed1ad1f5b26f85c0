;; A filter program that lets every request and answer pass, but traps on a
;; request with 40 headers or more: it stands for a crash that a request can cause.
;; Like ours it is called for headers and bodies of both ways, and at the end.
;; trap.wasm.hex is made of it by: wasm-as trap.wat -o - | xxd -p -c 64
(module
  (memory (export "memory") 1)
  (func (export "_initialize"))
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "proxy_on_context_create") (param i32 i32))
  (func (export "proxy_on_request_headers") (param $context i32) (param $headers i32) (param $end i32) (result i32)
    (if (i32.ge_u (local.get $headers) (i32.const 40)) (then (unreachable)))
    (i32.const 0))
  (func (export "proxy_on_request_body") (param i32 i32 i32) (result i32) (i32.const 0))
  (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32) (i32.const 0))
  (func (export "proxy_on_response_body") (param i32 i32 i32) (result i32) (i32.const 0))
  (func (export "proxy_on_done") (param i32) (result i32) (i32.const 1))
  (func (export "proxy_on_log") (param i32))
  (func (export "proxy_on_delete") (param i32)))
