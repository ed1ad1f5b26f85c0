package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// rpcClient calls by gRPC.
type rpcClient struct {
	conn *grpc.ClientConn
	key  string
}

func (s *stack) rpcClient(t *testing.T, key string) rpcClient {
	t.Helper()
	keepSecret("credential", key)
	conn, err := grpc.NewClient(s.env["SLUICE_GATEWAY_ADDR"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return rpcClient{conn, key}
}

// context is that of a call, with more metadata: name, value, and so on.
func (c rpcClient) context(t *testing.T, more ...string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	if c.key != "" {
		more = append(more, "authorization", "Bearer "+c.key)
	}
	return metadata.AppendToOutgoingContext(ctx, more...)
}

// rpcEnd is how a call ended. What the edge refuses has its metadata in the one header
// that there is, which clients show as trailers.
type rpcEnd struct {
	*status.Status
	meta metadata.MD
}

// value is the only value of a name in the metadata.
func (e rpcEnd) value(name string) string { return strings.Join(e.meta.Get(name), " and ") }

// call makes a unary call of a method with an argument.
func (c rpcClient) call(t *testing.T, method string, in any, more ...string) rpcEnd {
	t.Helper()
	var header, trailer metadata.MD
	err := c.conn.Invoke(c.context(t, more...), method, in, &emptypb.Empty{}, grpc.Header(&header), grpc.Trailer(&trailer))
	return rpcEnd{status.Convert(err), metadata.Join(header, trailer)}
}

const (
	emptyCall = "/grpc.testing.TestService/EmptyCall"
	unaryCall = "/grpc.testing.TestService/UnaryCall"
)

// What the edge refuses is refused in the words of gRPC, and what fails counts as a
// failure wherever requests are counted.
func TestRefusedCallsSpeakGRPC(t *testing.T) {
	t.Parallel()
	s := lentGateway(t)
	counted := func(calls string) (n float64) {
		for _, m := range sample.FindAllStringSubmatch(scrape(t, "http://"+s.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics"), -1) {
			if v, err := strconv.ParseFloat(m[3], 64); err == nil && m[1] == "requests" && strings.Contains(m[2], calls) {
				n += v
			}
		}
		return n
	}
	const failures, successes = `route="rpc.unimplemented",status_class="5xx"`, `route="rpc.empty",status_class="2xx"`
	failuresBefore, successesBefore := counted(failures), counted(successes) // by other tests
	key, id := s.interopBehind(t)
	m := newKey.FindStringSubmatch(s.exits(t, 0, "key", "create", "--name", "less", "--scope", "interop:empty"))
	if m == nil {
		t.Fatal("no key")
	}
	good, less, nobody := s.rpcClient(t, key), s.rpcClient(t, m[1]), s.rpcClient(t, "")
	eventually(t, "the keys work", func() error {
		for _, c := range []rpcClient{good, less} {
			if err := c.call(t, emptyCall, &emptypb.Empty{}).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	for range 2 {
		good.call(t, "/scarce.Service/Call", &emptypb.Empty{})
	}
	big := &testgrpc.Payload{Body: make([]byte, 100)}
	for _, c := range []struct {
		name   string
		got    rpcEnd
		code   codes.Code
		ours   string
		saying string
	}{
		{"without a key", nobody.call(t, unaryCall, &emptypb.Empty{}), codes.Unauthenticated, "authentication_required", "Authentication is required"},
		{"with a bad key", s.rpcClient(t, "slk_bad").call(t, unaryCall, &emptypb.Empty{}), codes.Unauthenticated, "invalid_api_key", "its end is missing"},
		{"without the scope", less.call(t, unaryCall, &emptypb.Empty{}), codes.PermissionDenied, "AUTH_002", "expected: interop:call"},
		{"the third of two a minute", good.call(t, "/scarce.Service/Call", &emptypb.Empty{}), codes.ResourceExhausted, "rate_limit_exceeded", "limit"},
		{"too large", nobody.call(t, "/small.Service/EmptyCall", big), codes.ResourceExhausted, "request_too_large", "at most 10 bytes"},
		{"no route, but one near", nobody.call(t, "/grpc.testing.TestServices/EmptyCall", &emptypb.Empty{}), codes.Unimplemented, "not_found", "expected: POST /grpc.testing.TestService/"},
		{"no upstream", nobody.call(t, "/away.Service/Call", &emptypb.Empty{}), codes.Unavailable, "service_unavailable", "unavailable"},
		{"the product's own", good.call(t, "/grpc.testing.UnimplementedService/Call", &emptypb.Empty{}), codes.Unimplemented, "", "unknown service"},
	} {
		if c.got.Code() != c.code || c.got.value("sluice-error-code") != c.ours || !strings.Contains(c.got.Message(), c.saying) ||
			c.ours != "" && !strings.HasSuffix(c.got.value("sluice-documentation-url"), "/docs/errors/"+c.ours) || len(c.got.meta.Get("x-request-id")) != 1 {
			t.Errorf("%s: %v %q %v", c.name, c.got.Code(), c.got.Message(), map[string][]string(c.got.meta))
		}
		if retry := c.got.value("retry-after"); (retry != "") != (c.code == codes.ResourceExhausted && c.ours == "rate_limit_exceeded" || c.ours == "service_unavailable") {
			t.Errorf("%s: retry-after %q", c.name, retry)
		}
	}

	refused, failed := less.call(t, unaryCall, &emptypb.Empty{}), good.call(t, "/grpc.testing.UnimplementedService/Call", &emptypb.Empty{})
	for request, want := range map[string]string{
		refused.value("x-request-id"): `"status":403`, failed.value("x-request-id"): `"status":501`,
	} {
		eventually(t, "the call is recorded as a failure", func() error {
			r, err := try(http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/requests/"+request, s.dev["SLUICE_ADMIN_KEY"], nil)
			if err == nil && (r.StatusCode != 200 || !strings.Contains(r.body, want) || !strings.Contains(r.body, `"grpc_status":`)) {
				err = fmt.Errorf("%d %s", r.StatusCode, r.body)
			}
			return err
		})
	}
	if out := s.exits(t, 0, "request", failed.value("x-request-id")); !strings.Contains(out, "Product interop answered grpc-status 12 UNIMPLEMENTED.") || !strings.Contains(out, id) {
		t.Error(out)
	}
	eventually(t, "the access log says the status of gRPC", func() error {
		for line := range strings.Lines(s.Output()) {
			if strings.Contains(line, failed.value("x-request-id")) && strings.Contains(line, `"grpc_status":12`) {
				return nil
			}
		}
		return fmt.Errorf("no line of %s", failed.value("x-request-id"))
	})
	eventually(t, "the metrics count calls by their status", func() error {
		if f, s := counted(failures)-failuresBefore, counted(successes)-successesBefore; f < 2 || s < 2 {
			return fmt.Errorf("%v failures and %v successes, want 2 and the calls that worked", f, s)
		}
		return nil
	})
}

// A deadline ends a call at the edge: the route's own, or the caller's, whether or not the
// product and the caller keep it themselves.
func TestDeadlinesOfCalls(t *testing.T) {
	t.Parallel()
	sleeper := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	sleeper.Config.Protocols = h2c()
	sleeper.Start()
	t.Cleanup(sleeper.Close)
	s := lentGateway(t)
	s.apply(t, fmt.Sprintf(`include: [builtin]
products: [{name: sleeper, upstream: grpc://%s}]
routes:
  - {name: calls, path: /calls.Service/*, product: sleeper, auth: [none], timeout: 50ms}
  - {name: streams, path: /streams.Service/*, product: sleeper, auth: [none], streaming: true}
`, sleeper.Listener.Addr()))
	for path, timeout := range map[string]string{"/calls.Service/Call": "", "/calls.Service/CallOfAnHour": "1H", "/streams.Service/Stream": "100m"} {
		body, never := io.Pipe() // a client that streams, and never ends
		defer never.Close()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url(path), body)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/grpc", "Te": "trailers", "Grpc-Timeout": timeout} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		res, err := (&http.Transport{Protocols: h2c()}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 200 || res.Header.Get("Grpc-Status") != "4" || res.Header.Get("Sluice-Error-Code") != "gateway_timeout" || res.Header.Get("Grpc-Message") == "" {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
	}
}

// h2c is HTTP/2 without TLS, by prior knowledge.
func h2c() *http.Protocols {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &p
}

// What the caller asked for arrives at the product: its deadline, its metadata, and none
// of its credentials.
func TestProductGetsWhatTheCallerAsked(t *testing.T) {
	t.Parallel()
	got := make(chan metadata.MD, 1)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		if deadline, ok := stream.Context().Deadline(); ok {
			md.Set("left", fmt.Sprint(int(time.Until(deadline).Seconds())))
		}
		got <- md
		stream.SetTrailer(metadata.Pairs("x-end", "of it", "x-bin-bin", string([]byte{0, 255})))
		return status.Error(codes.FailedPrecondition, "not yet: 100 %")
	}))
	s, key := gatewayTo(t, server, `
products: [{name: own, upstream: grpc://%s}]
routes: [{name: own, path: /own.Service/*, product: own, scope: "own:call"}]
`, "own:call")
	c := s.rpcClient(t, key)
	var end rpcEnd
	eventually(t, "the key works", func() error {
		end = c.call(t, "/own.Service/Anything", &emptypb.Empty{}, "x-note", "noted", "x-raw-bin", string([]byte{1, 254}))
		if end.Code() == codes.Unauthenticated {
			return end.Err()
		}
		return nil
	})
	if end.Code() != codes.FailedPrecondition || end.Message() != "not yet: 100 %" || end.value("x-end") != "of it" || end.value("x-bin-bin") != string([]byte{0, 255}) {
		t.Errorf("%v %v", end.Status, end.meta)
	}
	md := <-got
	if left, err := strconv.Atoi(strings.Join(md.Get("left"), "")); err != nil || left > 30 { // what the route leaves of the caller's two minutes
		t.Errorf("%d s are left of the call, %v", left, err)
	}
	if strings.Join(md.Get("x-note"), "") != "noted" || strings.Join(md.Get("x-raw-bin"), "") != string([]byte{1, 254}) ||
		md.Get("authorization") != nil || !strings.Contains(strings.Join(md.Get("x-sluice-identity"), ""), ";s=own:call") {
		t.Errorf("%v", md)
	}
}

// Browsers call by gRPC-web, from pages of origins that may.
func TestGRPCWeb(t *testing.T) {
	t.Parallel()
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return status.Error(codes.NotFound, "nothing here")
	}))
	s, key := gatewayTo(t, server, `
products: [{name: own, upstream: grpc://%s, cors: {origins: ["https://app.example"]}}]
routes: [{name: own, path: /own.Service/*, methods: [POST], product: own, scope: "own:call"}]
`, "own:call")
	ask := func(credential string) response {
		req, err := http.NewRequest(http.MethodPost, s.url("/own.Service/Call"), strings.NewReader("\x00\x00\x00\x00\x00"))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/grpc-web+proto", "X-Grpc-Web": "1", "Origin": "https://app.example", "Authorization": "Bearer " + credential} {
			req.Header.Set(name, value)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response{Response: res, body: string(text)}
	}
	eventually(t, "the key works", func() error {
		r := ask(key)
		if said := r.body + " " + r.Header.Get("Grpc-Status"); r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc-web") ||
			!strings.Contains(said, "5") || !strings.Contains(r.body+r.Header.Get("Grpc-Message"), "nothing here") {
			return fmt.Errorf("%d %q %v", r.StatusCode, r.body, r.Header)
		}
		return nil
	})
	r := ask("slk_bad")
	if r.StatusCode != 200 || r.Header.Get("Grpc-Status") != "16" || !strings.Contains(r.Header.Get("Grpc-Message"), "key is too short") ||
		r.Header.Get("Access-Control-Allow-Origin") != "https://app.example" || !strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), "grpc-status") {
		t.Errorf("%d %q %v", r.StatusCode, r.body, r.Header)
	}
	pre := call(t, http.MethodOptions, s.url("/own.Service/Call"), "", nil, "Origin", "https://app.example", "Access-Control-Request-Method", "POST")
	if pre.StatusCode != 200 || !strings.Contains(pre.Header.Get("Access-Control-Allow-Headers"), "x-grpc-web") {
		t.Errorf("%d %v", pre.StatusCode, pre.Header)
	}
}
