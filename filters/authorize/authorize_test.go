package authorize

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"testing"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/credentials/token"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/policy"
)

const now = 1_800_000_000

// edge is an Env in memory.
type edge struct {
	records map[keytable.Tag]keytable.Record
	windows map[ratelimit.ID]ratelimit.Window
	ready   bool
	address string
	vouched map[string]string // addresses by the credential that they are vouched for
	header  string
	headers map[string]string // others
	tokens  token.Table
	keys    apikey.Memo
	peer    string
	peers   clientcert.Memo
	// verified is how many signatures were checked.
	verified int
}

func (e *edge) Record(t keytable.Tag) (keytable.Record, bool) { r, ok := e.records[t]; return r, ok }
func (e *edge) Ready() bool                                   { return e.ready }
func (e *edge) ClientAddress() string                         { return e.address }
func (e *edge) CallerAddress(c *keytable.Record, token string) string {
	if a, ok := e.vouched[cmp.Or(token, keytable.FormatID(keytable.KeyPrefix, c.ID))]; ok {
		return a
	}
	return e.address
}
func (e *edge) Authorization() string          { return e.header }
func (e *edge) Header(name string) string      { return e.headers[name] }
func (e *edge) Tokens() *token.Table           { return &e.tokens }
func (e *edge) Keys() *apikey.Memo             { return &e.keys }
func (e *edge) Peer() string                   { return e.peer }
func (e *edge) Certificates() *clientcert.Memo { return &e.peers }
func (e *edge) Verify(_ jwt.Key, _ string, sum []byte) bool {
	e.verified++
	return string(sum) == "good"
}
func (e *edge) Take(_ ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, at int64) ratelimit.Result {
	if e.windows[id] == nil {
		e.windows[id] = ratelimit.New(id)
	}
	return e.windows[id].Take(l, at)
}

func (e *edge) Look(_ ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, at int64) ratelimit.Result {
	if e.windows[id] == nil {
		return ratelimit.New(id).Take(l, at)
	}
	return slices.Clone(e.windows[id]).Take(l, at)
}

func (e *edge) GiveBack(_ ratelimit.Kind, id ratelimit.ID, _ int64) { e.windows[id].GiveBack() }

func (e *edge) put(r keytable.Record) { e.records[r.Tag] = r }

const (
	bitAdmin = iota
	bitStreams
	bitRead
	bitClips
)

func newPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	grants := keytable.Scopes{}.With(bitAdmin).With(bitStreams).With(bitRead)
	p := policy.Parse((&policy.Policy{
		Anonymous: 3, Classes: []string{"default", "events"},
		Plans: []policy.Plan{
			{Number: 1, Name: "small", Limits: []policy.Limit{{PerMinute: 2}, {PerMinute: 5}}},
			{Number: 2, Name: "tiny", Limits: []policy.Limit{{PerMinute: 2}, {PerMinute: 5}}, Products: []string{"media"}},
		},
		Scopes: []policy.Scope{{Bit: bitAdmin, Name: "*"}, {Bit: bitStreams, Name: "streams:*"}, {Bit: bitRead, Name: "streams:read"}},
		Issuers: []policy.Issuer{{Name: "http://gw", Audience: "http://gw", Own: true, ScopeClaim: "scopes", AccountClaim: "account"},
			{Name: "https://id.example", Audience: "http://gw", ScopeClaim: "scopes", AccountClaim: "account"}},
		Routes: []policy.Route{
			{Name: "streams.list", Auth: policy.AuthKey, Scope: "streams:read", Grants: grants},
			{Name: "events.list", Auth: policy.AuthKey, Scope: "streams:read", Grants: grants, Class: 1},
			{Name: "any", Auth: policy.AuthKey},
			{Name: "media", Auth: policy.AuthKey, Product: "media"},
			{Name: "voice", Auth: policy.AuthKey | policy.AuthToken, Product: "voice"},
			{Name: "media", Revision: "2", Auth: policy.AuthKey, Product: "media-v2", Of: "media"},
			{Name: "voice", Revision: "2", Auth: policy.AuthKey, Product: "media", Of: "voice"},
			{Name: "streams.get", Auth: policy.AuthKey | policy.AuthToken, Scope: "streams:read", Grants: grants},
			{Name: "keys", Auth: policy.AuthSession},
			{Name: "both", Auth: policy.AuthSession | policy.AuthKey},
			{Name: "health", Auth: policy.AuthNone},
			{Name: "optional", Auth: policy.AuthNone | policy.AuthKey, Scope: "streams:read", Grants: grants},
			{Name: "closed"},
			{Name: "unmapped", Deny: decision.RouteNotMapped},
		},
	}).Encode())
	if p == nil {
		t.Fatal("the policy is not consistent")
	}
	return p
}

// key adds a key with the given scopes to e and returns its text.
func (e *edge) key(id uint64, change func(*keytable.Record), bits ...int) string {
	text := apikey.FormatKey(id, [apikey.SecretBytes]byte{byte(id)})
	r := keytable.Record{Tag: keytable.TagOfKey(sha256.Sum256([]byte(text))), Kind: keytable.KindKey, ID: id, Account: 100 + id, Plan: 1}
	for _, b := range bits {
		r.Scopes = r.Scopes.With(b)
	}
	if change != nil {
		change(&r)
	}
	e.put(r)
	return text
}

func newEdge() *edge {
	return &edge{records: map[keytable.Tag]keytable.Record{}, windows: map[ratelimit.ID]ratelimit.Window{}, ready: true, address: "192.0.2.1:5"}
}

func TestWhoGetsThrough(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	unknown := apikey.FormatKey(99, [apikey.SecretBytes]byte{99})
	ended := func(r *keytable.Record) { r.Expires = now }
	plan := func(n uint16) func(*keytable.Record) { return func(r *keytable.Record) { r.Plan = n } }
	flag := func(f uint8) func(*keytable.Record) { return func(r *keytable.Record) { r.Flags = f } }
	cases := map[string]struct {
		route string
		bits  []int
		set   func(*keytable.Record)
		raw   string // Authorization as it is, in place of the key's
		want  decision.Code
	}{
		"the scope itself":        {route: "streams.list", bits: []int{bitRead}},
		"the wildcard":            {route: "streams.list", bits: []int{bitStreams}},
		"admin":                   {route: "streams.list", bits: []int{bitAdmin}},
		"another scope":           {route: "streams.list", bits: []int{bitClips}, want: decision.ScopeMissing},
		"no scope":                {route: "streams.list", want: decision.ScopeMissing},
		"no scope needed":         {route: "any"},
		"no credential":           {route: "streams.list", raw: "none", want: decision.AuthRequired},
		"not a bearer":            {route: "streams.list", raw: "Basic x", want: decision.InvalidKey},
		"malformed":               {route: "streams.list", raw: "Bearer slk_x", want: decision.InvalidKey},
		"wrong checksum":          {route: "streams.list", raw: "Bearer " + unknown[:len(unknown)-1] + "!", want: decision.InvalidKey},
		"unknown":                 {route: "streams.list", raw: "Bearer " + unknown, want: decision.InvalidKey},
		"expired":                 {route: "streams.list", bits: []int{bitRead}, set: ended, want: decision.TokenExpired},
		"unpaid":                  {route: "streams.list", bits: []int{bitRead}, set: flag(keytable.FlagUnpaid), want: decision.Unpaid},
		"quota used":              {route: "streams.list", bits: []int{bitRead}, set: flag(keytable.FlagQuotaUsed), want: decision.QuotaUsed},
		"a plan not known":        {route: "streams.list", set: func(r *keytable.Record) { r.Plan = 9 }, want: decision.EdgeNotReady},
		"a product of the plan":   {route: "media", set: plan(2)},
		"a version of it":         {route: "media@2", set: plan(2)},
		"a version beyond it":     {route: "voice@2", set: plan(2), want: decision.PlanTooLow},
		"a product beyond it":     {route: "voice", set: plan(2), want: decision.PlanTooLow},
		"a plan of everything":    {route: "voice", set: plan(1)},
		"a mistyped key":          {route: "streams.get", raw: "Bearer slk_x", want: decision.InvalidKey},
		"unmapped, with a key":    {route: "unmapped", bits: []int{bitAdmin}, want: decision.RouteNotMapped},
		"unmapped, without a key": {route: "unmapped", raw: "none", want: decision.RouteNotMapped},
		"no policy":               {route: "streams.put", bits: []int{bitAdmin}, want: decision.EdgeNotReady},
		"public":                  {route: "health", raw: "none"},
		"optional, without":       {route: "optional", raw: "none"},
		"optional, good key":      {route: "optional", bits: []int{bitRead}},
		"optional, lacks scope":   {route: "optional", want: decision.ScopeMissing},
		"optional, bad key":       {route: "optional", raw: "Bearer " + unknown, want: decision.InvalidKey},
		"public, any credential":  {route: "health", raw: "Bearer " + unknown},
		"a route for nobody":      {route: "closed", bits: []int{bitAdmin}, want: decision.InvalidKey},
		"a session":               {route: "keys", raw: "Bearer eyJ.x.y"},
		"no session":              {route: "keys", raw: "none", want: decision.AuthRequired},
		"key or session: session": {route: "both", raw: "Bearer eyJ.x.y"},
		"key or session: bad key": {route: "both", raw: "Bearer " + unknown, want: decision.InvalidKey},
		"a session for a key":     {route: "any", raw: "Bearer eyJ.x.y", want: decision.InvalidKey},
	}
	for name, c := range cases {
		e := newEdge()
		e.header = "Bearer " + e.key(1, c.set, c.bits...)
		switch c.raw {
		case "":
		case "none":
			e.header = ""
		default:
			e.header = c.raw
		}
		v := Check(p, c.route, e, now)
		if v.Code != c.want {
			t.Errorf("%s: %q, want %q", name, v.Code, c.want)
		}
		if v.Rate.Limit == 0 || v.Rate.Reset <= now {
			t.Errorf("%s: no rate headers: %+v", name, v.Rate)
		}
		if v.Known && c.raw != "" {
			t.Errorf("%s: a caller without a key of ours is known", name)
		}
	}
}

func TestBeforeTheTableIsLoaded(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newEdge()
	e.ready = false
	e.header = "Bearer " + apikey.FormatKey(9, [apikey.SecretBytes]byte{})
	if v := Check(p, "any", e, now); v.Code != decision.EdgeNotReady || v.RetryAfter == 0 {
		t.Errorf("an unknown key: %+v", v)
	}
	e.header = "Bearer " + e.key(1, nil)
	if v := Check(p, "any", e, now); !v.OK() {
		t.Errorf("a key that is there already: %+v", v)
	}
	if v := Check(nil, "any", e, now); v.Code != decision.EdgeNotReady || v.RetryAfter == 0 {
		t.Errorf("no policy: %+v", v)
	}
}

func TestRateLimitOfAnAccount(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newEdge()
	e.header = "Bearer " + e.key(1, nil, bitRead)
	for i, want := range []decision.Code{"", "", decision.RateLimited, decision.RateLimited} {
		v := Check(p, "streams.list", e, now)
		if v.Code != want || v.Rate.Remaining != uint32(max(0, 1-i)) {
			t.Fatalf("request %d: %+v, want %q", i, v, want)
		}
		if (v.Code == decision.RateLimited) != (v.RetryAfter == 60) {
			t.Fatalf("request %d: Retry-After %d", i, v.RetryAfter)
		}
	}
	if v := Check(p, "events.list", e, now); !v.OK() || v.Rate.Limit != 5 {
		t.Errorf("another class has its own window: %+v", v)
	}
	e.header = "Bearer " + e.key(2, nil, bitRead)
	if v := Check(p, "streams.list", e, now); !v.OK() {
		t.Errorf("another account has its own window: %+v", v)
	}
}

func TestOwnLimitOfAnAccount(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newEdge()
	e.header = "Bearer " + e.key(1, func(r *keytable.Record) { r.Flags = keytable.FlagLimits }, bitRead)
	e.put(keytable.Record{Tag: keytable.TagOfLimit(101, "events"), Kind: keytable.KindLimit, Limit: 77})
	if v := Check(p, "events.list", e, now); v.Rate.Limit != 77 {
		t.Errorf("events: %+v", v.Rate)
	}
	if v := Check(p, "streams.list", e, now); v.Rate.Limit != 2 {
		t.Errorf("a class without an own limit: %+v", v.Rate)
	}
}

func TestLimitOfAKeyUnderItsAccounts(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newEdge()
	narrow := "Bearer " + e.key(1, func(r *keytable.Record) { r.Limit, r.Account = 3, 500 }, bitRead)
	wide := "Bearer " + e.key(2, func(r *keytable.Record) { r.Account = 500 }, bitRead)
	for i, c := range []struct {
		header    string
		ok        bool
		policy    string
		remaining uint32
	}{
		{narrow, true, "key", 2},    // the key has 3, the account 5
		{wide, true, "events", 3},   // of another key of the account
		{narrow, true, "key", 1},    // the account still has 2
		{wide, true, "events", 1},   // 4 of 5
		{narrow, true, "events", 0}, // a tie: the account's is told
		{wide, false, "events", 0},
		{narrow, false, "key", 0},
	} {
		e.header = c.header
		v := Check(p, "events.list", e, now)
		if v.OK() != c.ok || v.Rate.Policy != c.policy || v.Rate.Remaining != c.remaining {
			t.Fatalf("request %d: %+v, want %+v", i, v.Rate, c)
		}
	}
	if n := e.windows[ratelimit.KeyID(1)].Total(); n != 3 {
		t.Errorf("the key has used %d", n)
	}
}

// A request that the account's window refuses does not use up its key's.
func TestAKeyIsNotChargedForItsAccountsLimit(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newEdge()
	e.header = "Bearer " + e.key(1, func(r *keytable.Record) { r.Limit = 10 }, bitRead)
	for range 9 {
		Check(p, "streams.list", e, now)
	}
	if n := e.windows[ratelimit.KeyID(1)].Total(); n != 2 {
		t.Errorf("the key has used %d, its account let 2 through", n)
	}
}

func TestGuessingIsLimitedByAddress(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newEdge()
	e.header = "Bearer slk_guess"
	for i, want := range []decision.Code{decision.InvalidKey, decision.InvalidKey, decision.InvalidKey, decision.RateLimited} {
		if v := Check(p, "any", e, now); v.Code != want {
			t.Fatalf("guess %d: %q", i, v.Code)
		}
	}
	e.header = "Bearer " + e.key(1, nil)
	if v := Check(p, "any", e, now); !v.OK() {
		t.Errorf("a good key from the same address: %+v", v)
	}
	e.header, e.address = "Bearer slk_guess", "192.0.2.2:5"
	if v := Check(p, "any", e, now); v.Code != decision.InvalidKey {
		t.Errorf("another address: %+v", v)
	}
}
