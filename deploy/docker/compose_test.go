// Package docker_test holds what the compose file gives to whom.
package docker_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"sluice.dev/sluice/deploy/engines"
)

// service is what is looked at of a container.
type service struct {
	Ports       []string          `yaml:"ports"`
	Image       string            `yaml:"image"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
}

func services(t *testing.T) map[string]service {
	t.Helper()
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]service `yaml:"services"`
		Volumes  map[string]any     `yaml:"volumes"`
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.AllowDuplicateMapKey()); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) < 12 {
		t.Fatalf("only %d services", len(file.Services))
	}
	for name, s := range file.Services {
		for _, v := range s.Volumes {
			if from, _, named := strings.Cut(v, ":"); named && !strings.HasPrefix(from, ".") && file.Volumes[from] == nil {
				t.Errorf("%s mounts %s, which is no volume", name, from)
			}
		}
	}
	return file.Services
}

// holds are the secrets of secrets.env that each container is told, and the volumes
// that it mounts. Whatever is not here has none.
var holds = map[string]struct{ secrets, volumes string }{
	"postgres":       {"POSTGRES_PASSWORD", "database"},
	"seed":           {"CONTROLPLANE_PASSWORD MEDIA_PASSWORD POSTGRES_PASSWORD RUNTIME_PASSWORD SLUICE_SECRETS_KEY WORKER_PASSWORD", "keys"},
	"certs":          {"", "certs certs-controlplane certs-edge-1 certs-edge-2 certs-edge-3"},
	"controlplane-1": {"CONTROLPLANE_PASSWORD SLUICE_FEED_TOKEN SLUICE_IDENTITY_SECRETS SLUICE_METRICS_TOKEN SLUICE_SECRETS_KEY", "certs-controlplane"},
	"controlplane-2": {"CONTROLPLANE_PASSWORD SLUICE_FEED_TOKEN SLUICE_IDENTITY_SECRETS SLUICE_METRICS_TOKEN SLUICE_SECRETS_KEY", "certs-controlplane"},
	"worker-1":       {"MEDIA_IDENTITY_SECRETS SLUICE_SECRETS_KEY WORKER_PASSWORD", "/tmp"},
	"worker-2":       {"MEDIA_IDENTITY_SECRETS SLUICE_SECRETS_KEY WORKER_PASSWORD", "/tmp"},
	"runtime":        {"RUNTIME_IDENTITY_SECRETS RUNTIME_PASSWORD", ""},
	"media":          {"MEDIA_IDENTITY_SECRETS MEDIA_PASSWORD MEDIA_SECRETS_KEY", "/tmp"},
	"engine":         {"MEDIA_IDENTITY_SECRETS MEDIA_PASSWORD MEDIA_SECRETS_KEY", "/tmp engine"},
	"edge-1":         {"SLUICE_FEED_TOKEN", "certs-edge-1 edge-1"},
	"edge-2":         {"SLUICE_FEED_TOKEN", "certs-edge-2 edge-2"},
	"edge-3":         {"SLUICE_FEED_TOKEN", "certs-edge-3 edge-3"},
	"balancer":       {"", ""},
}

var secret = regexp.MustCompile(`\$\{([A-Z_]*(?:PASSWORD|SECRETS|SECRETS_KEY|TOKEN))\b`)

func TestEachContainerHasItsOwnSecretsAndVolumes(t *testing.T) {
	t.Parallel()
	all := services(t)
	for name, s := range all {
		told := map[string]bool{}
		for _, m := range secret.FindAllStringSubmatch(fmt.Sprint(s.Environment), -1) {
			told[m[1]] = true
		}
		var mounted []string
		for _, v := range s.Volumes {
			if from, _, _ := strings.Cut(v, ":"); !strings.HasPrefix(from, ".") {
				mounted = append(mounted, from)
			}
		}
		slices.Sort(mounted)
		want, there := holds[name]
		if got := strings.Join(slices.Sorted(maps.Keys(told)), " "); !there || got != want.secrets {
			t.Errorf("%s is told %q, want %q", name, got, want.secrets)
		}
		if got := strings.Join(mounted, " "); got != want.volumes {
			t.Errorf("%s mounts %q, want %q", name, got, want.volumes)
		}
		if strings.Contains(fmt.Sprint(s.Environment), "postgres://sluice:") != (name == "seed") {
			t.Errorf("%s signs in as the owner of the database: %v", name, name != "seed")
		}
	}
	if len(all) != len(holds) {
		t.Errorf("%d containers, want %d", len(all), len(holds))
	}
}

// Volumes of certificates are made by the image with an owner that may write there.
func TestTheImageHasAFolderForEachCertificate(t *testing.T) {
	t.Parallel()
	recipe, err := os.ReadFile("sluice.Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range services(t)["certs"].Volumes {
		_, at, _ := strings.Cut(v, ":")
		if !strings.Contains(string(recipe), "COPY --chown=65532:65532 state "+at+"\n") {
			t.Errorf("the image has no %s", at)
		}
	}
}

// What works on files of strangers has the programs for it, and nobody is told that there
// are none.
func TestWorkersOnMediaHaveThePrograms(t *testing.T) {
	t.Parallel()
	for name, s := range services(t) {
		works := name == "media" || name == "engine" || strings.HasPrefix(name, "worker-")
		if has := strings.Contains(s.Image, ":-sluice-media:local}"); has != works {
			t.Errorf("%s runs %s", name, s.Image)
		}
		for _, p := range engines.Programs {
			if s.Environment[p.Variable] != "" {
				t.Errorf("%s: %s is %s", name, p.Variable, s.Environment[p.Variable])
			}
		}
	}
	recipe, err := os.ReadFile("media.Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range engines.Programs {
		if !strings.Contains(string(recipe), "\nARG "+p.Variable+"\n") || !strings.Contains(string(recipe), " "+p.Variable+"=$"+p.Variable) {
			t.Errorf("the image is not told of %s", p.Variable)
		}
	}
}

// Publishers are told the ports on which the engine listens, so they are the same outside,
// by the same protocol; nobody else but the balancer is reached from outside.
func TestPortsOfTheEngineAreThoseThatPublishersAreTold(t *testing.T) {
	t.Parallel()
	for name, s := range services(t) {
		if len(s.Ports) > 0 != (name == "engine" || name == "balancer") {
			t.Errorf("%s publishes %q", name, s.Ports)
		}
		if name != "engine" {
			continue
		}
		var want []string
		for _, v := range []struct{ variable, kind string }{{"SLUICE_RTMP_ADDR", ""}, {"SLUICE_SRT_ADDR", "/udp"}, {"SLUICE_WEBRTC_MEDIA_ADDR", "/udp"}, {"SLUICE_MOQ_ADDR", "/udp"}} {
			port := strings.TrimPrefix(s.Environment[v.variable], "0.0.0.0:")
			want = append(want, "${SLUICE_INGEST_ADDR:-127.0.0.1}:"+port+":"+port+v.kind)
		}
		if !slices.Equal(s.Ports, want) {
			t.Errorf("%q, want %q", s.Ports, want)
		}
	}
}
