package decision

import "strconv"

// The statuses of gRPC that stand for a code (grpc.io, status codes).
const (
	grpcInvalidArgument    = 3
	grpcDeadlineExceeded   = 4
	grpcPermissionDenied   = 7
	grpcResourceExhausted  = 8
	grpcFailedPrecondition = 9
	grpcAborted            = 10
	grpcUnimplemented      = 12
	grpcInternal           = 13
	grpcUnavailable        = 14
	grpcUnauthenticated    = 16
)

// Headers of a refused call by gRPC, beside those that gRPC itself defines.
const (
	GRPCCodeHeader = "sluice-error-code"        // a Code
	GRPCDocsHeader = "sluice-documentation-url" // see DocsURL
)

// GRPCStatus is the grpc-status with which c goes out to a client of gRPC.
func GRPCStatus(c Code) int {
	switch status := Lookup(c).Status; status {
	case 401:
		return grpcUnauthenticated
	case 402:
		return grpcFailedPrecondition
	case 403:
		if c == RouteNotMapped {
			return grpcUnimplemented
		}
		return grpcPermissionDenied
	case 404, 405, 501:
		return grpcUnimplemented
	case 408, 504:
		return grpcDeadlineExceeded
	case 409, 412:
		return grpcAborted
	case 413, 429, 431:
		return grpcResourceExhausted
	case 500:
		return grpcInternal
	case 502, 503:
		return grpcUnavailable
	}
	return grpcInvalidArgument
}

// httpOfGRPC are the statuses of HTTP that count as the statuses of gRPC, by number, as
// google/rpc/code.proto has them.
var httpOfGRPC = [...]int{200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401}

// grpcNames are the names of the statuses of gRPC, by number.
var grpcNames = [...]string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
	"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}

// GRPCName is a status of gRPC with its name, such as "5 NOT_FOUND".
func GRPCName(status int) string {
	if status < 0 || status >= len(grpcNames) {
		return strconv.Itoa(status)
	}
	return strconv.Itoa(status) + " " + grpcNames[status]
}

// HTTPOfGRPC is the HTTP status as which a call that ended with a grpc-status counts.
// A call that ended without one was broken off: 499. What is no status of gRPC is 500.
func HTTPOfGRPC(status string) int {
	n := 0
	for i := range len(status) {
		if status[i] < '0' || status[i] > '9' || i > 1 {
			return 500
		}
		n = 10*n + int(status[i]-'0')
	}
	switch {
	case status == "":
		return 499
	case n >= len(httpOfGRPC):
		return 500
	}
	return httpOfGRPC[n]
}

// AppendGRPCMessage appends the grpc-message of d to dst: the message of its code and
// what its detail says, percent-encoded. It takes time linear in what it writes, which is
// at most 4 KiB.
func AppendGRPCMessage(dst []byte, d Decision) []byte {
	dst = appendPercent(dst, Lookup(d.Code).Message)
	if d.Detail.Field == "" {
		return dst
	}
	detail := Bounded([]Detail{d.Detail})[0]
	dst = appendPercent(append(dst, ' '), detail.Field)
	dst = appendPercent(append(dst, ' '), detail.Issue)
	if detail.Expected != "" {
		dst = appendPercent(append(dst, "; expected: "...), detail.Expected)
	}
	return append(dst, '.')
}

// appendPercent appends s, in which all but printable ASCII is encoded.
func appendPercent(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}
