//go:build tinygo

package wasmhost

import "unsafe"

// EndStream resets the stream of the effective context, whose answer has begun; why goes
// to the access log, which proxywasm.SendHttpResponse has no word for.
func EndStream(status int, why string) bool {
	return proxySendLocalResponse(uint32(status), unsafe.StringData(why), len(why), nil, 0, nil, 0, -1) == 0
}

//export proxy_send_local_response
func proxySendLocalResponse(status uint32, details *byte, detailsSize int, body *byte, bodySize int, headers *byte, headersSize int, grpcStatus int32) uint32
