package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// interop are grpc-go's own programs of the interoperability tests, built once.
var interop = sync.OnceValues(func() (dir string, err error) {
	dir, err = filepath.Abs(filepath.Join("..", ".sluice", "clients", "grpc"))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-C", filepath.Join("clients", "grpc"), "-o", dir,
		"google.golang.org/grpc/interop/client", "google.golang.org/grpc/interop/server")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build grpc-go's interop programs: %w: %s", err, out)
	}
	return dir, nil
})

// interopProgram is the path of one of them.
func interopProgram(t testing.TB, name string) string {
	t.Helper()
	dir, err := interop()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// grpcService starts grpc-go's interop server and returns its address.
func grpcService(t *testing.T) string {
	t.Helper()
	addr := freeAddrs(t, 1)[0]
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	p := running(t, exec.Command(interopProgram(t, "server"), "-port", port))
	t.Cleanup(func() { _ = p.Stop() })
	eventually(t, "the interop server listens", func() error {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	return addr
}

// grpcDocument leads to a gRPC service: each method has a scope, those that stream are
// on routes of their own.
const grpcDocument = `include: [builtin]
classes:
  - {name: default, per_minute: 100000}
  - {name: scarce, per_minute: 2}
products:
  - name: interop
    upstream: grpc://%[1]s
  - name: away
    upstream: grpc://127.0.0.1:1
    retries: 0
routes:
  - {name: rpc, path: /grpc.testing.TestService/*, methods: [POST], product: interop, scope: "interop:call", streaming: true}
  - {name: rpc.empty, path: /grpc.testing.TestService/EmptyCall, methods: [POST], product: interop, scope: "interop:empty", timeout: 5s}
  - {name: rpc.unary, path: /grpc.testing.TestService/UnaryCall, methods: [POST], product: interop, scope: "interop:call", timeout: 5s}
  - {name: rpc.unimplemented, path: /grpc.testing.UnimplementedService/*, product: interop, scope: "interop:call"}
  - {name: rpc.scarce, path: /scarce.Service/*, product: interop, class: scarce, scope: "interop:call"}
  - {name: rpc.small, path: /small.Service/*, product: interop, auth: [none], body_limit: 10, rewrite: {prefix: /grpc.testing.TestService/}}
  - {name: rpc.away, path: /away.Service/*, product: away, auth: [none]}
`

// interopBehind puts grpc-go's interop server behind a gateway, and makes a key for all of it.
func (s *stack) interopBehind(t *testing.T) (key, id string) {
	t.Helper()
	s.apply(t, fmt.Sprintf(grpcDocument, grpcService(t)))
	m := newKey.FindStringSubmatch(s.exits(t, 0, "key", "create", "--name", "grpc", "--scope", "interop:call", "--scope", "interop:empty"))
	if m == nil {
		t.Fatal("no key")
	}
	eventually(t, "the key works", func() error {
		return s.rpcClient(t, m[1]).call(t, emptyCall, &emptypb.Empty{}).Err()
	})
	return m[1], m[2]
}

// gatewayTo is a gateway in front of a gRPC server, by a document in which %s is the
// server's address, and a key with a scope.
func gatewayTo(t *testing.T, server *grpc.Server, document, scope string) (s *stack, key string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	s = lentGateway(t)
	t.Cleanup(server.Stop)
	s.apply(t, "include: [builtin]"+fmt.Sprintf(document, l.Addr()))
	m := newKey.FindStringSubmatch(s.exits(t, 0, "key", "create", "--name", "grpc", "--scope", scope))
	if m == nil {
		t.Fatal("no key")
	}
	return s, m[1]
}

// apply puts a document in force at every edge.
func (s *stack) apply(t *testing.T, document string) {
	t.Helper()
	file := filepath.Join(s.dir, "applied.yaml")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	s.exits(t, 0, "apply", "-f", file, "--wait", "--timeout", "2m")
}

// interopCases are the tests of grpc-go's client that must pass through the gateway.
var interopCases = []string{"empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream", "timeout_on_sleeping_server",
	"cancel_after_begin", "cancel_after_first_response", "status_code_and_message", "special_status_message", "unimplemented_method", "unimplemented_service",
	"custom_metadata", "rpc_soak", "channel_soak"}

// grpc-go's own client, against its own server, cannot tell the gateway from the server:
// streams both ways, trailers, metadata, deadlines and cancellation.
func TestInteropClientThroughTheGateway(t *testing.T) {
	t.Parallel()
	s := lentGateway(t)
	key, _ := s.interopBehind(t)
	host, port, err := net.SplitHostPort(s.env["SLUICE_GATEWAY_ADDR"])
	if err != nil {
		t.Fatal(err)
	}
	keepSecret("credential", key)
	for _, name := range interopCases {
		var out bytes.Buffer
		cmd := exec.Command(interopProgram(t, "client"), "-server_host", host, "-server_port", port, "-test_case", name,
			"-additional_metadata", "authorization:Bearer "+key, "-soak_iterations", "50", "-soak_max_failures", "0")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}
