// Package observability checks the dashboard and the alert rules of this folder:
// that Prometheus can read them, and that they name metrics which exist.
package observability

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/goccy/go-yaml"
)

// rules is the part of Prometheus' format that is used here.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Record      string            `yaml:"record"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// readRules refuses members that it does not know.
func readRules(t *testing.T) rules {
	t.Helper()
	b, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b), yaml.DisallowUnknownField())
	var r rules
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// panels returns the expressions of the dashboard by the title of their panel.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all[p.Title] = append(all[p.Title], strings.ReplaceAll(q.Expr, "$__rate_interval", "5m"))
		}
	}
	return all
}

var (
	metric  = regexp.MustCompile(`\b(?:sluice|envoy)_[a-z0-9_]+\b`)
	matched = regexp.MustCompile(`__name__=~"([^"]+)"`)
	literal = regexp.MustCompile(`"(sluice_[a-z_]+)"`)
	series  = regexp.MustCompile(`_(bucket|sum|count)$`)
	record  = regexp.MustCompile(`\b[a-z_]+:[a-z0-9_:]+`)
	joined  = regexp.MustCompile(`"(sluice_[a-z_]+_)"\s*\+`) // a prefix that names are put behind
)

// defined are the names of metrics in the sources, and the prefixes of those
// that are put together.
func defined(t *testing.T) (names map[string]bool, prefixes []string) {
	t.Helper()
	names = map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && strings.HasPrefix(e.Name(), ".s") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range literal.FindAllSubmatch(b, -1) {
			names[string(m[1])] = true
		}
		for _, m := range joined.FindAllSubmatch(b, -1) {
			prefixes = append(prefixes, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range envoys(t) {
		names[name] = true
	}
	return names, prefixes
}

// envoys are the metrics of Envoy's own that a real one shows: an end-to-end test
// holds the list against it.
func envoys(t *testing.T) []string {
	t.Helper()
	// The second file has those of the filter that edges load for routes which ask for it.
	var names []string
	for _, file := range []string{"envoy_metrics.txt", "envoy_metrics_validate.txt"} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.Fields(string(b))...)
	}
	return names
}

func check(t *testing.T, where, expr string, names map[string]bool, prefixes []string) {
	t.Helper()
	if _, err := metricsql.Parse(expr); err != nil {
		t.Errorf("%s: %v in %s", where, err, expr)
	}
	for _, m := range matched.FindAllStringSubmatch(expr, -1) {
		all := regexp.MustCompile("^(?:" + m[1] + ")$")
		if !slices.ContainsFunc(slices.Collect(maps.Keys(names)), all.MatchString) {
			t.Errorf("%s: nothing shows what %s matches", where, m[1])
		}
	}
	expr = matched.ReplaceAllString(expr, "")
	for _, m := range record.FindAllString(expr, -1) {
		if !names[m] {
			t.Errorf("%s: nothing records %s", where, m)
		}
	}
	for _, m := range metric.FindAllString(record.ReplaceAllString(expr, ""), -1) {
		known := names[m] || names[series.ReplaceAllString(m, "")]
		for _, p := range prefixes {
			known = known || strings.HasPrefix(m, p)
		}
		if !known {
			t.Errorf("%s: nothing shows %s", where, m)
		}
	}
}

func TestRulesAndPanels(t *testing.T) {
	t.Parallel()
	names, prefixes := defined(t)
	n := 0
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			n++
			check(t, r.Alert+r.Record, r.Expr, names, prefixes)
			if r.Record != "" {
				names[r.Record] = true // for the rules that follow, which are taken after it
				continue
			}
			if r.Alert == "" || r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
				t.Errorf("%+v: incomplete", r)
			}
		}
	}
	for title, exprs := range panels(t) {
		for _, e := range exprs {
			n++
			check(t, title, e, names, prefixes)
		}
	}
	if n < 20 {
		t.Errorf("only %d expressions were found", n)
	}
}

// Every alert is in the operators' table of what may go wrong, and every alert of
// that table is there.
func TestTheManualNamesEveryAlert(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var told, known []string
	for _, m := range regexp.MustCompile("`(Sluice[A-Za-z]+)`").FindAllStringSubmatch(string(b), -1) {
		told = append(told, m[1])
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				known = append(known, r.Alert)
			}
		}
	}
	slices.Sort(told)
	slices.Sort(known)
	if told = slices.Compact(told); len(known) < 20 || !slices.Equal(told, known) {
		t.Errorf("the manual tells of %v, there are %v", told, known)
	}
}

func TestAnUnknownMetricIsFound(t *testing.T) {
	t.Parallel()
	names, prefixes := defined(t)
	if names["envoy_no_such_total"] || !names["envoy_wasm_edge_vm_reload_success"] {
		t.Error("Envoy's metrics are not known")
	}
	if names["sluice_no_such_total"] || !names["sluice_http_requests_total"] || len(prefixes) == 0 {
		t.Errorf("%d names, prefixes %v", len(names), prefixes)
	}
}

// The variables of the dashboard ask for what edges show.
func TestVariables(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	names, prefixes := defined(t)
	asked := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	var found []string
	for _, v := range d.Templating.List {
		found = append(found, v.Name)
		if m := asked.FindStringSubmatch(v.Query); m != nil {
			check(t, v.Name, m[1], names, prefixes)
			if m[2] != v.Name {
				t.Errorf("%s has the values of %s", v.Name, m[2])
			}
		}
	}
	if want := []string{"source", "product", "route"}; !slices.Equal(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
}

// Each alert for products of any kind has series in promtool.yaml on which it fires.
func TestAlertsForProductsHaveExamples(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("promtool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if g.Name != "sluice-products" {
				continue
			}
			n++
			if !regexp.MustCompile(`alertname: ` + r.Alert + `\n\s+exp_alerts:\n`).Match(b) {
				t.Errorf("nothing shows when %s fires", r.Alert)
			}
			if regexp.MustCompile(`\b(api|media|runtime)\b`).MatchString(r.Expr) {
				t.Errorf("%s is for a product of ours: %s", r.Alert, r.Expr)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d alerts", n)
	}
}
