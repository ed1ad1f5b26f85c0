package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

const kongFile = "../../controlplane/gateway/kong/testdata/strange.yml"

func TestImportKongWritesThreeFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	run := func(args ...string) (string, error) {
		c := importKongCommand()
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&out)
		c.SetArgs(append([]string{"--out", dir}, args...))
		c.SilenceUsage = true
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run(kongFile)
	if err != nil || !strings.Contains(out, "3 products, 7 routes, 2 keys") {
		t.Fatalf("%v %s", err, out)
	}
	text := map[string]string{}
	for _, name := range []string{"sluice.yaml", "keys.csv", "report.txt"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		info, _ := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, err, info.Mode())
		}
		text[name] = string(b)
	}
	d, _, err := config.ParseYAML([]byte(text["sluice.yaml"]))
	if err != nil || d.Validate() != nil || len(d.Routes) != 7 {
		t.Errorf("%v %v", err, d.Validate())
	}
	if strings.Contains(text["keys.csv"], "Hd3wP8eUq6Tz1VnXb5Ks") || strings.Count(text["keys.csv"], "\n") != 3 {
		t.Error(text["keys.csv"])
	}
	if !strings.Contains(text["report.txt"], "left out: line 24, services[2].routes[0]: the route is guarded by the plugin ip-restriction") {
		t.Error(text["report.txt"])
	}
	if _, err := run(kongFile); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("files were overwritten: %v", err)
	}
	if _, err := run(kongFile, "--force"); err != nil {
		t.Error(err)
	}
	if _, err := run("main.go"); err == nil {
		t.Error("a file that is not Kong's")
	}
}
