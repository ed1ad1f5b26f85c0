package decision

import (
	"strings"
	"testing"
)

// Each code goes out with the status of gRPC that its clients expect.
func TestStatusesOfGRPC(t *testing.T) {
	t.Parallel()
	for code, want := range map[Code]int{
		InvalidRequest: 3, AuthRequired: 16, InvalidKey: 16, TokenExpired: 16, ScopeMissing: 7, AddrRefused: 7, PlanTooLow: 7, Unpaid: 9, RouteNotMapped: 12, NotFound: 12,
		Timeout: 4, GatewayTimeout: 4, Conflict: 10, TooLarge: 8, HeadersTooLarge: 8, RateLimited: 8, Internal: 13, NotImplemented: 12, BadGateway: 14,
		Unavailable: 14, EdgeNotReady: 14,
	} {
		if got := GRPCStatus(code); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
	for _, row := range table {
		if n := GRPCStatus(row.Code); n < 1 || n >= len(grpcNames) {
			t.Errorf("%s: %d", row.Code, n)
		}
	}
}

// A call's status counts as an HTTP status of its kind.
func TestHTTPStatusOfACall(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{"0": 200, "1": 499, "5": 404, "16": 401, "17": 500, "99": 500, "100": 500, "": 499, "x": 500, "-1": 500} {
		if got := HTTPOfGRPC(status); got != want {
			t.Errorf("%q: %d, want %d", status, got, want)
		}
	}
	if GRPCName(5) != "5 NOT_FOUND" || GRPCName(99) != "99" || GRPCName(-1) != "-1" {
		t.Error(GRPCName(5), GRPCName(99), GRPCName(-1))
	}
}

func TestMessageOfGRPC(t *testing.T) {
	t.Parallel()
	d := Decision{Code: ScopeMissing, Detail: Detail{Field: "scope", Issue: "is 100 % missing\n", Expected: "é"}}
	if got, want := string(AppendGRPCMessage(nil, d)), "The key lacks the scope that this route needs. scope is 100 %25 missing%0A; expected: %C3%A9."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	long := Detail{strings.Repeat("%", 1e5), strings.Repeat("%", 1e5), strings.Repeat("%", 1e5)}
	if n := len(AppendGRPCMessage(nil, Decision{Code: ScopeMissing, Detail: long})); n > 4<<10 {
		t.Errorf("%d bytes", n)
	}
}
