//go:build clients

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
)

// grpcurl finds what a service is by reflection, which streams both ways, and calls it.
func TestGrpcurl(t *testing.T) {
	t.Parallel()
	server, state := healthy()
	state.SetServingStatus("own.Service", healthgrpc.HealthCheckResponse_SERVING)
	s, key := gatewayTo(t, server, healthDocument, "own:call")
	keepSecret("credential", key)
	dir, err := filepath.Abs(filepath.Join("..", ".sluice", "clients", "grpc"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-C", filepath.Join("clients", "grpc"), "-o", dir+"/", "github.com/fullstorydev/grpcurl/cmd/grpcurl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	grpcurl := func(args ...string) string {
		out, _ := exec.Command(filepath.Join(dir, "grpcurl"), append([]string{"-plaintext"}, args...)...).CombinedOutput()
		return string(out)
	}
	credential, addr := "authorization: Bearer "+key, s.env["SLUICE_GATEWAY_ADDR"]
	if out := grpcurl("-H", credential, addr, "list"); !strings.Contains(out, "grpc.health.v1.Health\n") {
		t.Error(out)
	}
	if out := grpcurl("-H", credential, "-d", `{"service":"own.Service"}`, addr, "grpc.health.v1.Health/Check"); !strings.Contains(out, `"status": "SERVING"`) {
		t.Error(out)
	}
	if out := grpcurl(addr, "list"); !strings.Contains(out, "Authentication is required.") {
		t.Error(out)
	}
}
