package app

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The page of settings lists the program's variables, once each.
func TestSettingsPageListsEveryVariable(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.NewReplacer(" <!-- platform -->\n", "\n", "<!-- platform -->", "", "<!-- /platform -->", "").Replace(string(b)) // what is marked is of some products
	if listed := strings.Count(page, "\n| `SLUICE_"); listed != len(variables) {
		t.Errorf("docs/settings.md lists %d variables, the program reads %d", listed, len(variables))
	}
	for _, v := range variables {
		fallback, readers := v.fallback, strings.ReplaceAll(v.readers, " ", ", ")
		if fallback != "" {
			fallback = "`" + fallback + "`"
		}
		switch {
		case readers == "":
			readers = "commands"
		case len(strings.Fields(v.readers)) == 6:
			readers = "all"
		}
		if row := fmt.Sprintf("\n| `%s` | %s | %s | %s |\n", v.name, fallback, readers, v.help); !strings.Contains(page, row) {
			t.Errorf("docs/settings.md lacks: %s", row)
		}
	}
}

// A stack on default addresses starts: no two parts listen on the same one.
func TestDefaultAddressesDiffer(t *testing.T) {
	t.Parallel()
	taken := map[string]string{}
	for _, v := range variables {
		if !strings.HasSuffix(v.name, "_ADDR") && !strings.HasSuffix(v.name, "_LISTEN") {
			continue
		}
		if other, ok := taken[v.fallback]; ok {
			t.Errorf("%s and %s are both %s", other, v.name, v.fallback)
		}
		taken[v.fallback] = v.name
	}
	if len(taken) < 10 {
		t.Errorf("only %d addresses", len(taken))
	}
}

func setTo(name, value string) Environment {
	return Environment{Lookup: func(string) (string, bool) { return "", false }}.With(map[string]string{name: value})
}

func TestAddressesFollowTheCertificate(t *testing.T) {
	t.Parallel()
	secure := setTo("SLUICE_TLS_CERT", "cert.pem")
	if got := secure.gatewayURL() + " " + secure.runtimeURL(); got != "https://127.0.0.1:8080 https://127.0.0.1:8090" {
		t.Error(got)
	}
	named := secure.With(map[string]string{"SLUICE_PUBLIC_URL": "https://api.example/", "SLUICE_RUNTIME_PUBLIC_URL": "https://chat.example/"})
	if got := named.gatewayURL() + " " + named.runtimeURL(); got != "https://api.example https://chat.example" {
		t.Error(got)
	}
	plain := setTo("SLUICE_PUBLIC_URL", "https://api.example")
	if got := plain.gatewayURL() + " " + plain.runtimeURL(); got != "http://127.0.0.1:8080 http://127.0.0.1:8090" {
		t.Error(got)
	}
}

func TestTimesAndSizes(t *testing.T) {
	t.Parallel()
	c, err := setTo("SLUICE_CHAT_IDLE", "90s").chatLimits()
	if err != nil || c.Idle != 90*time.Second || c.FirstEvent != 2*time.Minute || c.KeepAlive != 15*time.Second || c.MaxUpload != 2<<30 {
		t.Errorf("%+v %v", c, err)
	}
	for name, value := range map[string]string{"SLUICE_CHAT_IDLE": "90", "SLUICE_CHAT_KEEP_ALIVE": "-1s", "SLUICE_MAX_UPLOAD": "2GB"} {
		if _, err := setTo(name, value).chatLimits(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

func TestWhereTheBuiltInModelsAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode      string
		providers int
		left, bad bool
	}{
		{"", 0, false, false}, {"", 1, true, false}, {"on", 1, false, false}, {"off", 1, true, false}, {"off", 0, false, true}, {"yes", 0, false, true},
	} {
		left, err := setTo("SLUICE_CHAT_ECHO", c.mode).withoutEcho(c.providers)
		if left != c.left || (err != nil) != c.bad {
			t.Errorf("%q beside %d providers: %v %v", c.mode, c.providers, left, err)
		}
	}
}

func TestReadingVariables(t *testing.T) {
	t.Parallel()
	if got := setTo("SLUICE_GATEWAY_ADDR", "").Get("SLUICE_GATEWAY_ADDR"); got != "127.0.0.1:8080" {
		t.Errorf("an empty variable gives %q", got)
	}
	if _, err := setTo("x", "").Require("SLUICE_DATABASE_URL"); err == nil || !strings.Contains(err.Error(), "SLUICE_DATABASE_URL") {
		t.Error(err)
	}
	secret := strings.Repeat("ab", 32)
	if got, err := setTo("SLUICE_IDENTITY_SECRETS", secret+", "+secret+",media:"+secret).identities(); err != nil || len(got.platform) != 2 || len(got.own) != 1 || got.own[0].Product != "media" {
		t.Error(got, err)
	}
	for _, bad := range []string{secret + "zz", ":" + secret, "media:", "media:" + secret + "zz", "media"} {
		if _, err := setTo("SLUICE_IDENTITY_SECRETS", bad).identities(); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("a bad secret is shown, or accepted: %v", err)
		}
	}
	if got, err := setTo("SLUICE_WEBHOOK_ALLOW_CIDRS", "10.0.0.0/8, ::1/128").prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS"); err != nil || len(got) != 2 {
		t.Error(got, err)
	}
	if _, err := setTo("SLUICE_WEBHOOK_ALLOW_CIDRS", "10.0.0.0").prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS"); err == nil {
		t.Error("an address passes for a network")
	}
	if got := setTo("SLUICE_PUBLIC_URL", "https://api.example.com/").publicURL(); got != "https://api.example.com" {
		t.Error(got)
	}
}

// Of several hosts the one that takes writes is asked; what lasts goes past a pooler.
func TestAddressesOfTheDatabase(t *testing.T) {
	t.Parallel()
	const pair, bouncer = "postgres://u:p@a:1,b:2/db", "postgres://u:p@pgbouncer:6432/db"
	for _, c := range []struct{ url, direct, wantURL, wantDirect string }{
		{bouncer, "", bouncer, bouncer},
		{pair, "", pair + "?target_session_attrs=read-write", pair + "?target_session_attrs=read-write"},
		{bouncer, pair, bouncer, pair + "?target_session_attrs=read-write"},
	} {
		e := setTo("SLUICE_DATABASE_URL", c.url).With(map[string]string{directVariable: c.direct})
		url, err := e.DatabaseURL()
		direct, errDirect := e.DirectURL()
		if err != nil || errDirect != nil || url != c.wantURL || direct != c.wantDirect {
			t.Errorf("%q and %q: %q %v, %q %v", c.url, c.direct, url, err, direct, errDirect)
		}
	}
	if _, err := setTo(directVariable, "postgres://u:hunter2@a:x/db").DirectURL(); err == nil || !strings.Contains(err.Error(), directVariable) || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestPortsOfEdges(t *testing.T) {
	t.Parallel()
	if got, err := shift("V", "127.0.0.1:8080", 200); err != nil || got != "127.0.0.1:8280" {
		t.Error(got, err)
	}
	for _, bad := range []string{"8080", "127.0.0.1:0", "127.0.0.1:65500", "127.0.0.1:http"} {
		if got, err := shift("V", bad, 100); err == nil || !strings.Contains(err.Error(), "V is") {
			t.Errorf("%s: %s %v", bad, got, err)
		}
	}
}
