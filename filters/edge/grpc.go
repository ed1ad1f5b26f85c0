package main

import (
	"strconv"
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/wasmhost"
)

// grpcType begins the media types of gRPC.
const grpcType = "application/grpc"

// isRPC reports whether the request is a call by gRPC, whose client understands no other
// answer. Only of requests that may be one is the host asked, and while it knows their
// headers.
func isRPC(mayBe bool) bool {
	return mayBe && strings.HasPrefix(wasmhost.Header("content-type"), grpcType)
}

// denyRPC answers a call by gRPC with the status of d in place of the error envelope:
// what that says stands in the headers. Behind gRPC-web, Envoy makes of them what
// browsers read.
func (r *request) denyRPC(d decision.Decision) types.Action {
	headers := make([][2]string, 0, 7)
	headers = append(headers,
		[2]string{"content-type", grpcType},
		[2]string{"grpc-status", strconv.Itoa(decision.GRPCStatus(d.Code))},
		[2]string{"grpc-message", string(decision.AppendGRPCMessage(nil, d))},
		[2]string{decision.GRPCCodeHeader, string(d.Code)},
		[2]string{decision.GRPCDocsHeader, decision.DocsURL(r.plugin.policy.DocsBase, d.Code)})
	if d.RetryAfter > 0 {
		headers = append(headers, [2]string{"retry-after", strconv.Itoa(d.RetryAfter)},
			[2]string{"grpc-retry-pushback-ms", strconv.Itoa(1000 * d.RetryAfter)})
	}
	r.send(200, headers, nil)
	r.usage.setEdgeStatus(decision.Lookup(d.Code).Status)
	return types.ActionPause
}

// OnHttpResponseTrailers reads how a call by gRPC has ended.
func (r *request) OnHttpResponseTrailers(int) types.Action {
	if r.usage.rpc {
		status, _ := proxywasm.GetHttpResponseTrailer("grpc-status")
		r.usage.endRPC(status)
	}
	return types.ActionContinue
}

// beginRPC looks, when the answer to what may be a call by gRPC begins, whether it is
// one to such a call. Until its status is known it counts as broken off.
func (u *usage) beginRPC(end bool) {
	kind, _ := proxywasm.GetHttpResponseHeader("content-type")
	if u.rpc = !u.refused && strings.HasPrefix(kind, grpcType); !u.rpc {
		return
	}
	status := ""
	if end {
		status, _ = proxywasm.GetHttpResponseHeader("grpc-status")
	}
	u.status = decision.HTTPOfGRPC(status)
}

// endRPC notes the grpc-status of a call: it counts as the HTTP status that stands for it.
func (u *usage) endRPC(status string) { u.status, u.rpc = decision.HTTPOfGRPC(status), false }
