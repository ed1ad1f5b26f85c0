package authorize

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"testing"

	"sluice.dev/sluice/filters/credentials/allowlist"
	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

const account = 501

// session returns a token of our own with the given signature and end; the
// Verify of these tests takes the signature "good".
func session(id, scope, sum string, end int64) string {
	return issued("http://gw", id, scope, sum, end)
}

func issued(issuer, id, scope, sum string, end int64) string {
	b64 := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"iss":%q,"aud":"http://gw","account":%q,"scopes":[%q],"exp":%d,"jti":%q}`,
		issuer, keytable.FormatID(keytable.AccountPrefix, account), scope, end, id)
	return b64([]byte(`{"alg":"ES256","kid":"k1","typ":"at+jwt"}`)) + "." + b64([]byte(claims)) + "." + b64([]byte(sum))
}

// newTokenEdge is an edge that knows the issuer's key and the account, changed
// by change.
func newTokenEdge(change func(*keytable.Record)) *edge {
	e := newEdge()
	for _, issuer := range []string{"http://gw", "https://id.example"} {
		for _, r := range keytable.Split(keytable.TagOfIssuerKey(issuer, "k1"), jwt.Key{Alg: jwt.ES256, Public: []byte("public")}.Append(nil)) {
			e.put(r)
		}
	}
	r := keytable.Record{Tag: keytable.TagOfAccount(account), Kind: keytable.KindAccount, Account: account, Plan: 1}
	if change != nil {
		change(&r)
	}
	e.put(r)
	return e
}

func TestTokens(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	good := session("sess_1", "streams:read", "good", now+100)
	flag := func(f uint8) func(*keytable.Record) { return func(r *keytable.Record) { r.Flags = f } }
	cases := map[string]struct {
		route, text string
		set         func(*keytable.Record)
		want        decision.Code
		known       bool
	}{
		"good":                           {route: "streams.get", text: good, known: true},
		"another scope":                  {route: "streams.get", text: session("sess_1", "streams:write", "good", now+100), want: decision.ScopeMissing, known: true},
		"forged":                         {route: "streams.get", text: session("sess_1", "*", "forged", now+100), want: decision.InvalidToken},
		"ended":                          {route: "streams.get", text: session("sess_1", "*", "good", now), want: decision.TokenExpired},
		"forged and ended":               {route: "streams.get", text: session("sess_1", "*", "forged", now), want: decision.InvalidToken},
		"no token":                       {route: "streams.get", text: "a.b.c", want: decision.InvalidToken},
		"a route for keys":               {route: "streams.list", text: good, want: decision.InvalidKey},
		"unpaid":                         {route: "streams.get", text: good, set: flag(keytable.FlagUnpaid), want: decision.Unpaid, known: true},
		"quota used":                     {route: "streams.get", text: good, set: flag(keytable.FlagQuotaUsed), want: decision.QuotaUsed, known: true},
		"a product beyond the plan":      {route: "voice", text: good, set: func(r *keytable.Record) { r.Plan = 2 }, want: decision.PlanTooLow, known: true},
		"a plan not known":               {route: "streams.get", text: good, set: func(r *keytable.Record) { r.Plan = 9 }, want: decision.EdgeNotReady},
		"no such account":                {route: "streams.get", text: good, set: func(r *keytable.Record) { r.Kind = keytable.KindNone }, want: decision.InvalidToken},
		"a session's route":              {route: "keys", text: good, known: true},
		"a session's route, unpaid":      {route: "keys", text: good, set: flag(keytable.FlagUnpaid), known: true},
		"a session's route, forged":      {route: "keys", text: session("sess_1", "*", "forged", now+100)}, // its product refuses
		"a session's route, no account":  {route: "keys", text: good, set: func(r *keytable.Record) { r.Kind = keytable.KindNone }},
		"a session's route, wrong place": {route: "keys", text: good, set: flag(keytable.FlagAllowlist), want: decision.EdgeNotReady, known: true},
	}
	for name, c := range cases {
		e := newTokenEdge(c.set)
		e.header = "Bearer " + c.text
		for range 2 { // judged, and remembered
			v := Check(p, c.route, e, now)
			if v.Code != c.want || v.Known != c.known || c.known && (v.Token != "sess_1" || v.Caller.Account != account) {
				t.Errorf("%s: %+v, want %q", name, v, c.want)
			}
		}
	}
}

// A session's route takes tokens of no other issuer, even where its product would
// trust what the edge says of the caller.
func TestTokensOfOtherIssuersAreNoSessions(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newTokenEdge(nil)
	e.header = "Bearer " + issued("https://id.example", "t1", "streams:read", "good", now+100)
	if v := Check(p, "streams.get", e, now); !v.OK() || !v.Known {
		t.Errorf("a route of tokens: %+v", v)
	}
	for _, route := range []string{"keys", "both"} {
		if v := Check(p, route, e, now); v.Known {
			t.Errorf("%s: %+v", route, v)
		}
	}
}

func TestTokensCountForTheirAccount(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newTokenEdge(nil)
	e.header = "Bearer " + session("sess_1", "streams:read", "good", now+100)
	Check(p, "streams.get", e, now)
	e.header = "Bearer " + e.key(1, func(r *keytable.Record) { r.Account = account }, bitRead)
	if v := Check(p, "streams.get", e, now); !v.OK() || v.Rate.Remaining != 0 {
		t.Fatalf("a key of the same account: %+v", v)
	}
	e.header = "Bearer " + session("sess_2", "streams:read", "good", now+100)
	if v := Check(p, "streams.get", e, now); v.Code != decision.RateLimited {
		t.Fatalf("a second session of the account: %+v", v)
	}
}

func TestGuessingTokensIsLimitedByAddress(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newTokenEdge(nil)
	for i, want := range []decision.Code{decision.InvalidToken, decision.InvalidToken, decision.InvalidToken, decision.RateLimited} {
		e.header = "Bearer " + session(fmt.Sprint("sess_", i), "*", "forged", now+100)
		if v := Check(p, "streams.get", e, now); v.Code != want {
			t.Fatalf("guess %d: %q", i, v.Code)
		}
	}
}

func TestAllowlist(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newTokenEdge(func(r *keytable.Record) { r.Flags, r.Plan = keytable.FlagAllowlist, 1 })
	for _, r := range keytable.Split(keytable.TagOfAllowlist(account), allowlist.Encode([]netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")})) {
		e.put(r)
	}
	listed := e.key(1, func(r *keytable.Record) { r.Account, r.Flags = account, keytable.FlagAllowlist })
	free := e.key(2, nil)
	events := func(address, credential string) decision.Code {
		e.address, e.header = address, "Bearer "+credential
		return Check(p, "voice", e, now).Code
	}
	for address, want := range map[string]decision.Code{"192.0.2.9:1": "", "[::ffff:192.0.2.9]:1": decision.RateLimited, "198.51.100.1:1": decision.AddrRefused, "[2001:db9::1]:1": decision.AddrRefused} {
		e.windows = newEdge().windows
		if want == decision.RateLimited { // the same client in mapped form gets as far as the limit
			events("192.0.2.9:1", listed)
			events("192.0.2.9:1", listed)
		}
		if got := events(address, listed); got != want {
			t.Errorf("key from %s: %q, want %q", address, got, want)
		}
	}
	e.windows = newEdge().windows
	if got := events("198.51.100.1:1", session("sess_1", "*", "good", now+100)); got != decision.AddrRefused {
		t.Errorf("a token from elsewhere: %q", got)
	}
	if got := events("198.51.100.1:1", free); got != "" {
		t.Errorf("an account without a list: %q", got)
	}
	e.vouched = map[string]string{keytable.FormatID(keytable.KeyPrefix, 1): "192.0.2.9:0", "sess_1": "198.51.100.2:0"}
	for name, c := range map[string]struct {
		address, credential string
		want                decision.Code
	}{
		"a service vouches for an address that is listed":       {"198.51.100.1:1", listed, ""},
		"a service vouches for one that is not, from a listed":  {"192.0.2.9:1", session("sess_1", "*", "good", now+100), decision.AddrRefused},
		"it vouches for another credential of the same account": {"198.51.100.1:1", session("sess_2", "*", "good", now+100), decision.AddrRefused},
	} {
		e.windows = newEdge().windows
		if got := events(c.address, c.credential); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A route that a policy opens to tokens stays shut while the edge knows nothing.
func TestTokensBeforeTheTableIsLoaded(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newTokenEdge(nil)
	e.ready = false
	e.header = "Bearer " + session("sess_1", "streams:read", "good", now+100)
	if v := Check(p, "streams.get", e, now); v.Code != decision.EdgeNotReady || v.RetryAfter == 0 {
		t.Fatalf("%+v", v)
	}
}

// What tokens cost keys: nothing is looked up for them.
func BenchmarkKey(b *testing.B) {
	e := newEdge()
	p := policy.Parse((&policy.Policy{
		Classes: []string{"default"}, Plans: []policy.Plan{{Number: 1, Name: "p", Limits: []policy.Limit{{PerMinute: 1 << 30}}}},
		Routes: []policy.Route{{Name: "r", Auth: policy.AuthKey | policy.AuthToken}},
	}).Encode())
	e.header = "Bearer " + e.key(1, nil)
	for b.Loop() {
		if v := Check(p, "r", e, now); !v.OK() {
			b.Fatal(v)
		}
	}
}
