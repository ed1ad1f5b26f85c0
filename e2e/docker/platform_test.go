//go:build docker

package docker

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/e2e/harness"
)

// project names the containers of a run.
const project = "sluice-e2e"

// platform is all the containers, seen from the machine.
type platform struct {
	gateway, runtime, admin string // base URLs, all of the balancer
	ingest                  string // address of the media engine's ports
	dev                     map[string]string
}

// docker runs the client and returns what it prints.
func docker(t testing.TB, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command("docker", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, &errs)
	}
	return strings.TrimSpace(out.String())
}

// compose runs docker compose, whichever is installed.
func compose(t testing.TB, env []string, args ...string) error {
	t.Helper()
	argv := []string{"docker", "compose"}
	if exec.Command("docker", "compose", "version").Run() != nil {
		argv = []string{"docker-compose"}
	}
	argv = append(argv, "--env-file", "../../.sluice/docker/secrets.env", "-f", "../../deploy/docker/compose.yaml", "-p", project)
	argv = append(argv, args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// start brings everything up, and down at the end of the test.
func start(t *testing.T) platform {
	t.Helper()
	addrs, err := freeport.Addrs(3) // for the balancer
	if err != nil {
		t.Fatal(err)
	}
	const ingest = "127.77.0.1" // of this machine too: others may have these ports
	env := []string{"SLUICE_INGEST_ADDR=" + ingest, "SLUICE_INGEST_HOST=" + ingest, "SLUICE_GATEWAY_PORT=" + addrs[0], "SLUICE_RUNTIME_PORT=" + addrs[1], "SLUICE_ADMIN_PORT=" + addrs[2],
		"SLUICE_PUBLIC_URL=http://" + addrs[0], "SLUICE_EDGE_CONCURRENCY=1"}
	down := func() error { return compose(t, env, "down", "--volumes", "--timeout", "20") }
	if err := down(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := down(); err != nil {
			t.Error(err)
		}
	})
	if err := compose(t, env, "up", "-d"); err != nil {
		t.Fatal(err)
	}
	p := platform{gateway: "http://" + addrs[0], runtime: "http://" + addrs[1], admin: "http://" + addrs[2], ingest: ingest}
	p.dev = keys(t)
	eventually(t, "the platform answers", func() error { return p.gives(http.MethodGet, "/v1/streams", p.dev["SLUICE_API_KEY"], 200) })
	return p
}

// keys takes dev.env out of the container that made it.
func keys(t testing.TB) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dev.env")
	docker(t, "cp", container(t, "seed")+":/state/dev.env", file)
	vars, err := harness.ReadEnv(file)
	if err != nil {
		t.Fatal(err)
	}
	return vars
}

// container is the id of a service's container.
func container(t testing.TB, service string) string {
	t.Helper()
	id := docker(t, "ps", "-aq", "--filter", "label=com.docker.compose.project="+project, "--filter", "label=com.docker.compose.service="+service)
	if id == "" || strings.Contains(id, "\n") {
		t.Fatalf("containers of %s: %q", service, id)
	}
	return id
}

// eventually asks until f succeeds: containers give no signal.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	if err := harness.Until(f); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}} // each request is balanced anew

func ask(method, url, key string, body any, headers ...string) (harness.Answer, error) {
	return harness.Ask(context.Background(), client, method, url, key, body, headers...)
}

// gives returns nil if the gateway answers with the status.
func (p platform) gives(method, path, key string, status int) error {
	a, err := ask(method, p.gateway+path, key, nil)
	if err == nil && a.StatusCode != status {
		err = fmt.Errorf("%s %s: %d %s", method, path, a.StatusCode, a.Text)
	}
	return err
}

// make makes something through the gateway, with one Idempotency-Key, and reads it.
func (p platform) make(t testing.TB, path, key, once string, body, into any) {
	t.Helper()
	eventually(t, "POST "+path, func() error {
		a, err := ask(http.MethodPost, p.gateway+path, key, body, "Idempotency-Key", once)
		if err != nil {
			return err
		}
		return a.Into(into)
	})
}
