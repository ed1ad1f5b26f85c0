package providers

import (
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/runtime/chat/upstream"
)

func lookup(name string) (string, bool) {
	key, ok := map[string]string{"ACME_KEY": "sk-secret", "EMPTY": ""}[name]
	return key, ok
}

func TestParse(t *testing.T) {
	t.Parallel()
	targets, err := Parse([]byte(`
providers:
  - {name: acme, url: "https://api.acme.example/v1", key_from: ACME_KEY, models: ["acme-*", small], weight: 3, one_limit: true}
  - {name: rest, url: "http://127.0.0.1:9000"}
`), lookup)
	if err != nil {
		t.Fatal(err)
	}
	if len(targets) != 2 || targets[0].Name != "acme" || targets[0].Weight != 3 || strings.Join(targets[0].Models, " ") != "acme-* small" || targets[1].Models != nil {
		t.Errorf("got %+v", targets)
	}
	acme, rest := targets[0].Provider.(*upstream.Provider), targets[1].Provider.(*upstream.Provider)
	if acme.Key != "sk-secret" || !acme.OneLimit || rest.Key != "" || rest.OneLimit {
		t.Errorf("got %+v %+v", acme.Config, rest.Config)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		``:                    {"0 providers"},
		`providers: []`:       {"0 providers"},
		`providers: x`:        {"does not parse"},
		`providers: [{a: 1}]`: {"does not parse"},
		`{"providers":[{"name":"a","url":"https://h"}],"x":1}`: {"does not parse"},
		`providers: [{}]`: {"providers[0]: name must", "url: "},
		`providers: [{name: a, url: "https://h"}, {name: a, url: "https://h"}]`:                                         {"providers[1]: name is that of another"},
		`providers: [{name: a b, url: "https://user:pw@h/?x=1", weight: -1, models: ["", "a*b", "*"], key_from: NONE}]`: {"name must", "weight must", `""`, `"a*b"`, "NONE is not set", "url: "},
		`providers: [{name: a, url: "https://h", key_from: EMPTY}]`:                                                     {"EMPTY is not set"},
		`providers: [{name: a, url: "https://h", models: [` + strings.Repeat("m,", maxModels) + `m]}]`:                  {"models are more"},
		`providers: [` + strings.Repeat(`{name: a},`, MaxProviders) + `{name: b}]`:                                      {"101 providers"},
		strings.Repeat("#", MaxBytes+1): {"larger than"},
	} {
		_, err := Parse([]byte(text), lookup)
		if err == nil {
			t.Errorf("%.80s is accepted", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%.80s: %v lacks %q", text, err, w)
			}
		}
		if strings.Contains(err.Error(), "pw") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`providers: [{name: a, url: "https://h", models: [m]}]`))
	f.Add([]byte("providers:\n- &a {name: a}\n- *a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		growth.Linear(t, len(text), 2048, 512<<10, func() { _, _ = Parse(text, lookup) })
		targets, err := Parse(text, lookup)
		if err == nil && (len(targets) == 0 || len(targets) > MaxProviders) {
			t.Fatalf("%q gives %d providers", text, len(targets))
		}
		for _, p := range targets {
			if err == nil && (p.Provider == nil || p.Name == "") {
				t.Fatalf("%q gives %+v", text, p)
			}
		}
	})
}
