package kubernetes_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// secretKeys are what the Secret of each process holds, and all that it is told in
// secret.
var secretKeys = map[string][]string{
	"controlplane": {"SLUICE_DATABASE_URL", "SLUICE_FEED_TOKEN", "SLUICE_IDENTITY_SECRETS", "SLUICE_METRICS_TOKEN", "SLUICE_SECRETS_KEY"},
	"worker":       {"SLUICE_DATABASE_URL", "SLUICE_IDENTITY_SECRETS", "SLUICE_SECRETS_KEY"},
	"runtime":      {"SLUICE_DATABASE_URL", "SLUICE_IDENTITY_SECRETS"},
	"media":        {"SLUICE_DATABASE_URL", "SLUICE_IDENTITY_SECRETS", "SLUICE_SECRETS_KEY"},
	"edge":         {"SLUICE_FEED_TOKEN"},
	"migrate":      {"SLUICE_DATABASE_LOGINS", "SLUICE_DATABASE_URL"},
}

// secretOf is the Secret of a process. The media engine belongs to the product.
func secretOf(process string) string {
	if process == "engine" {
		process = "media"
	}
	return "sluice-" + process
}

// Each process is given the one Secret that is its own, whole, and no other in any
// other way.
func TestEachProcessHasItsOwnSecret(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		for _, w := range c.workloads {
			var given []string
			for _, v := range w.spec.Volumes {
				if v.Secret != nil || v.Projected != nil {
					given = append(given, "a volume: "+v.Name)
				}
			}
			for _, box := range append(slices.Clone(w.spec.InitContainers), w.spec.Containers...) {
				for _, from := range box.EnvFrom {
					if from.SecretRef != nil {
						given = append(given, from.SecretRef.Name)
					}
				}
				for _, e := range box.Env {
					if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
						given = append(given, e.ValueFrom.SecretKeyRef.Name+"/"+e.ValueFrom.SecretKeyRef.Key)
					}
				}
			}
			if want := []string{secretOf(w.name)}; secretKeys[strings.TrimPrefix(want[0], "sluice-")] == nil || !slices.Equal(given, want) {
				t.Errorf("%s is given %v, want %v", w.name, given, want)
			}
		}
		for name, data := range c.settings {
			for variable := range data {
				if slices.Contains([]string{"SLUICE_DATABASE_URL", "SLUICE_DATABASE_DIRECT_URL", "SLUICE_DATABASE_LOGINS", "SLUICE_IDENTITY_SECRETS", "SLUICE_SECRETS_KEY", "SLUICE_FEED_TOKEN", "SLUICE_METRICS_TOKEN"}, variable) {
					t.Errorf("%s stands in the ConfigMap %s", variable, name)
				}
			}
		}
	})
}

// The Secrets that the documentation has people make hold what each process needs,
// and nothing else.
func TestTheSecretsOfTheDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(strings.ReplaceAll(string(text), "\\\n", " "), "\n")
	name, key := regexp.MustCompile(`^secret sluice-([a-z]+) `), regexp.MustCompile(`(SLUICE_[A-Z_]+)=`)
	found := map[string][]string{}
	for _, line := range commands {
		m := name.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, k := range key.FindAllStringSubmatch(line, -1) {
			found[m[1]] = append(found[m[1]], k[1])
		}
		slices.Sort(found[m[1]])
	}
	for process, want := range secretKeys {
		if !slices.Equal(found[process], want) {
			t.Errorf("sluice-%s is made of %v, want %v", process, found[process], want)
		}
	}
	if len(found) != len(secretKeys) {
		t.Errorf("%d secrets are made, want %d", len(found), len(secretKeys))
	}
}
