package authorize

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

const foreign = "kong_0123456789abcdefghijKLMNOP"

// importKey adds a key that another system issued.
func (e *edge) importKey(text string, change func(*keytable.Record), bits ...int) {
	r := keytable.Record{Tag: apikey.TagOfImported(text), Kind: keytable.KindKey, ID: 7, Account: 107, Plan: 1}
	for _, b := range bits {
		r.Scopes = r.Scopes.With(b)
	}
	if change != nil {
		change(&r)
	}
	e.put(r)
	e.put(keytable.Record{Tag: keytable.TagOfImports(), Kind: keytable.KindImports})
}

// withHeaders is newPolicy with headers that hold keys.
func withHeaders(t *testing.T, names ...string) *policy.Policy {
	t.Helper()
	p := newPolicy(t)
	p.KeyHeaders = names
	if p = policy.Parse(p.Encode()); p == nil {
		t.Fatal("the policy is not consistent")
	}
	return p
}

func TestImportedKeys(t *testing.T) {
	t.Parallel()
	dotted := "SG.0123456789abcdef.ghij"
	webToken := "eyJ0123456789abcdef.e30.c2ln"
	cases := map[string]struct {
		imported, sent, route string
		set                   func(*keytable.Record)
		bits                  []int
		loading               bool
		want                  decision.Code
	}{
		"imported":                        {imported: foreign, sent: foreign, route: "streams.list", bits: []int{bitRead}},
		"of the form of ours":             {imported: apikey.FormatKey(9, [32]byte{9}), sent: apikey.FormatKey(9, [32]byte{9}), route: "any"},
		"as long as ours":                 {imported: strings.Repeat("z", apikey.KeyLen), sent: strings.Repeat("z", apikey.KeyLen), route: "any"},
		"lacks the scope":                 {imported: foreign, sent: foreign, route: "streams.list", want: decision.ScopeMissing},
		"expired":                         {imported: foreign, sent: foreign, route: "any", set: func(r *keytable.Record) { r.Expires = now }, want: decision.TokenExpired},
		"nobody has imported any":         {sent: foreign, route: "any", want: decision.InvalidKey},
		"another":                         {imported: foreign, sent: foreign + "x", route: "any", want: decision.InvalidKey},
		"too short":                       {imported: "short", sent: "short", route: "any", want: decision.InvalidKey},
		"too long":                        {imported: strings.Repeat("a", 513), sent: strings.Repeat("a", 513), route: "any", want: decision.InvalidKey},
		"the edge does not know yet":      {sent: foreign, route: "any", loading: true, want: decision.EdgeNotReady},
		"with dots, where tokens go too":  {imported: dotted, sent: dotted, route: "streams.get", bits: []int{bitRead}},
		"like a token, where only keys":   {imported: webToken, sent: webToken, route: "any"},
		"like a token, where tokens":      {imported: webToken, sent: webToken, route: "streams.get", want: decision.InvalidToken},
		"a route that takes no keys":      {imported: foreign, sent: foreign, route: "closed", want: decision.InvalidKey},
		"a record of another kind":        {imported: foreign, sent: foreign, route: "any", set: func(r *keytable.Record) { r.Kind = keytable.KindToken }, want: decision.InvalidKey},
		"where a key is optional":         {imported: foreign, sent: foreign, route: "optional", bits: []int{bitRead}},
		"where a key is optional, no key": {imported: foreign, sent: foreign[1:], route: "optional", want: decision.InvalidKey},
	}
	for name, c := range cases {
		e := newEdge()
		e.ready = !c.loading
		if c.imported != "" {
			e.importKey(c.imported, c.set, c.bits...)
		}
		for range 2 { // the second time it is remembered
			e.header = "Bearer " + c.sent
			if v := Check(newPolicy(t), c.route, e, now); v.Code != c.want || v.Known && v.Caller.Account != 107 {
				t.Errorf("%s: %q, want %q: %+v", name, v.Code, c.want, v)
			}
		}
	}
}

// A hash that somebody supplies never becomes the tag of anything but an imported key.
func TestAnImportedHashNamesNoOtherRecord(t *testing.T) {
	t.Parallel()
	own := apikey.FormatKey(3, [32]byte{3})
	for _, tag := range []keytable.Tag{keytable.TagOfKey(apikey.Hash(own)), keytable.TagOfKey(apikey.Hash("secret\x00name")), keytable.TagOfSecret("name")} {
		if tag == apikey.TagOfImported(own) || tag == apikey.TagOfImported("secret\x00name") {
			t.Error("two records have one tag")
		}
	}
	e := newEdge()
	text := e.key(3, nil)
	e.importKey(text, nil) // of the same text, for another account
	e.header = "Bearer " + text
	if v := Check(newPolicy(t), "any", e, now); v.Caller.Account != 103 {
		t.Errorf("a key of ours became %+v", v.Caller)
	}
}

// Guesses use up a window; then texts are neither hashed nor looked for, but those
// that were found before are.
func TestGuessesAtImportedKeysAreBounded(t *testing.T) {
	t.Parallel()
	e, p := newEdge(), newPolicy(t)
	e.importKey(foreign, nil)
	other := foreign + "-other"
	e.importKey(other, nil)
	ask := func(text string) Verdict {
		e.header = "Bearer " + text
		return Check(p, "any", e, now)
	}
	if v := ask(foreign); !v.OK() {
		t.Fatalf("%+v", v)
	}
	for i := range p.Anonymous {
		if v := ask(fmt.Sprintf("a-guess-at-a-key-%04d", i)); v.Code != decision.InvalidKey {
			t.Fatalf("guess %d: %q", i, v.Code)
		}
	}
	for text, want := range map[string]decision.Code{"a-guess-at-a-key-9999": decision.RateLimited, other: decision.RateLimited, foreign: ""} {
		if v := ask(text); v.Code != want {
			t.Errorf("%s: %q, want %q", text, v.Code, want)
		}
	}
	if v := ask(e.key(1, nil)); !v.OK() {
		t.Errorf("a key of ours: %+v", v)
	}
}

func TestKeyHeaders(t *testing.T) {
	t.Parallel()
	e := newEdge()
	own := e.key(1, nil, bitRead)
	e.importKey(foreign, nil, bitRead)
	for name, c := range map[string]struct {
		bearer  string
		headers map[string]string
		route   string
		want    decision.Code
	}{
		"ours":                     {headers: map[string]string{"x-api-key": own}, route: "streams.list"},
		"imported":                 {headers: map[string]string{"apikey": foreign}, route: "streams.list"},
		"Bearer still":             {bearer: "Bearer " + own, route: "streams.list"},
		"beside Authorization":     {bearer: "Bearer " + own, headers: map[string]string{"apikey": own}, route: "streams.list", want: decision.RepeatedHeader},
		"beside one that is bad":   {bearer: "Basic Og==", headers: map[string]string{"apikey": own}, route: "streams.list", want: decision.RepeatedHeader},
		"in two headers":           {headers: map[string]string{"apikey": own, "x-api-key": own}, route: "streams.list", want: decision.RepeatedHeader},
		"of another name":          {headers: map[string]string{"x-key": own}, route: "streams.list", want: decision.AuthRequired},
		"two in one header":        {headers: map[string]string{"apikey": own + "," + own}, route: "streams.list", want: decision.InvalidKey},
		"unknown":                  {headers: map[string]string{"apikey": foreign + "x"}, route: "streams.list", want: decision.InvalidKey},
		"too short":                {headers: map[string]string{"apikey": "x"}, route: "streams.list", want: decision.InvalidKey},
		"a token is no key":        {headers: map[string]string{"apikey": session("sess_1", "streams:read", "good", now+100)}, route: "streams.get", want: decision.InvalidKey},
		"a route without keys":     {headers: map[string]string{"apikey": own}, route: "keys", want: ""}, // as without: its product refuses
		"open to anybody":          {headers: map[string]string{"apikey": "x"}, route: "health"},
		"optional, and good":       {headers: map[string]string{"apikey": own}, route: "optional"},
		"optional, and bad":        {headers: map[string]string{"apikey": "x"}, route: "optional", want: decision.InvalidKey},
		"optional, and none":       {route: "optional"},
		"with Bearer in front":     {headers: map[string]string{"apikey": "Bearer " + own}, route: "streams.list", want: decision.InvalidKey},
		"longer than is looked at": {headers: map[string]string{"apikey": strings.Repeat("a", 9000)}, route: "streams.list", want: decision.InvalidKey},
	} {
		e.header, e.headers, e.windows = c.bearer, c.headers, newEdge().windows
		want := c.want
		if name == "a route without keys" {
			want = Check(newPolicy(t), c.route, e, now).Code
		}
		if v := Check(withHeaders(t, "apikey", "x-api-key"), c.route, e, now); v.Code != want {
			t.Errorf("%s: %q, want %q", name, v.Code, want)
		}
	}
	e.header, e.headers = "", map[string]string{"x-api-key": own}
	if v := Check(newPolicy(t), "streams.list", e, now); v.Code != decision.AuthRequired {
		t.Errorf("a header that is not configured: %+v", v)
	}
}
