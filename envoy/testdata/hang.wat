;; A program for Envoy that says so and never returns from a request with the
;; header x-hang.
;; hang.wasm.hex is made of it by: wasm-as hang.wat -o - | xxd -p -c 64
(module
  (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
  (import "env" "proxy_get_header_map_value" (func $header (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "x-hang")
  (data (i32.const 32) "this worker hangs now")
  (func (export "_initialize"))
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "proxy_on_context_create") (param i32 i32))
  (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
    (if (i32.eqz (call $header (i32.const 0) (i32.const 16) (i32.const 6) (i32.const 0) (i32.const 4)))
      (then
        (drop (call $log (i32.const 2) (i32.const 32) (i32.const 21)))
        (loop $again (br $again))))
    (i32.const 0)))
