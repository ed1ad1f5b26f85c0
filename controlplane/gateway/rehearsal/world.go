package rehearsal

import (
	"fmt"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/credentials/token"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/counter"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/recording"
)

// world is one document at work on recorded requests: an edge as it would be, with
// windows of its own. It is the authorize.Env of the request at hand.
type world struct {
	policy  *policy.Policy
	matcher *matcher
	keys    map[string]string // of routes in policy, by their names
	records *records
	counter counter.Counter
	windows windows
	quotas  *quotas // nil: marks of accounts are as they are

	address string
	times   int // how often the request at hand counts
}

// newWorld compiles d as it is compiled for edges.
func newWorld(d config.Document, n config.Numbers, docsBase string, summer *recording.Summer, known *records) (*world, error) {
	compiled, err := d.Policy(0, docsBase, n)
	if err != nil {
		return nil, err
	}
	p := policy.Parse(compiled.Encode()) // as an edge has it
	if p == nil {
		return nil, fmt.Errorf("the policy is not one that an edge accepts")
	}
	w := &world{policy: p, matcher: newMatcher(d, summer), keys: map[string]string{}, records: known, windows: windows{values: map[sharedlimit.Place]slot{}}}
	for i := range p.Routes {
		if p.Routes[i].Of == "" { // a version of a product asks the same of callers
			w.keys[p.Routes[i].Name] = p.Routes[i].Key()
		}
	}
	return w, nil
}

// outcome is what becomes of a request.
type outcome struct {
	route, product, class string
	code                  decision.Code // empty: the product gets it
	detail                decision.Detail
	price                 uint64
	limit                 ratelimit.Result // that refused it
	unknown               string           // what would have to be known to tell; empty: nothing
}

// decide runs one request, which counts times.
func (w *world) decide(r *recording.Request, seen *headers, c caller, times int) (o outcome) {
	f := w.matcher.find(r, seen)
	o.route, o.unknown = f.name, f.unknown
	route, ok := w.policy.Route(w.keys[f.name])
	if !ok {
		o.unknown = "its route, which the document does not have"
		return o
	}
	o.product, o.class = route.Product, w.policy.Classes[route.Class]
	if c.unseen && route.Deny == "" && route.Auth&policy.AuthNone == 0 {
		o.unknown = "whether it has a credential, which its present route does not look at"
	}
	if o.unknown != "" {
		return o
	}
	w.address, w.times = r.Client+":0", times
	if w.quotas != nil && c.Kind != authorize.None {
		c.Record.Flags = w.quotas.mark(c.Record.Account, c.Record.Flags)
	}
	v := authorize.CheckKnown(w.policy, w.keys[f.name], w, c.Credential, r.Time/1000)
	if v.Shadowed() { // it passes
		v.Decision, v.Rate.OK = decision.Pass, true
	}
	o.code, o.detail = v.Code, v.Detail
	if !v.Rate.OK {
		o.limit = v.Rate
	}
	switch {
	case v.OK() && route.BodyLimit > 0 && r.In > route.BodyLimit:
		o.code = decision.TooLarge
	case v.Code == decision.AuthRequired && route.Price > 0:
		o.code, o.price = decision.PaymentRequired, route.Price
		if c.paid { // as much as was asked; whether that is still enough the caller compares
			o.code = ""
		}
	}
	return o
}

// Record is what edges know under a tag.
func (w *world) Record(t keytable.Tag) (keytable.Record, bool) {
	r, ok := w.records.find(t)
	if ok && r.Kind == keytable.KindAccount && w.quotas != nil {
		r.Flags = w.quotas.mark(r.Account, r.Flags)
	}
	return r, ok
}

// Take counts the request at hand.
func (w *world) Take(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, now int64) (r ratelimit.Result) {
	for range max(1, w.times) {
		r, _, _ = w.counter.Take(&w.windows, k, id, l, ratelimit.Fleet{}, now)
	}
	return r
}

// Look is what Take would return for one request.
func (w *world) Look(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, now int64) ratelimit.Result {
	return counter.Look(&w.windows, k, id, l, ratelimit.Fleet{}, now)
}

// GiveBack takes back what Take has just counted.
func (w *world) GiveBack(k ratelimit.Kind, id ratelimit.ID, now int64) {
	for range max(1, w.times) {
		w.counter.GiveBack(&w.windows, k, id, now)
	}
}

// ClientAddress is the address of the request at hand.
func (w *world) ClientAddress() string { return w.address }

// CallerAddress is that too: which other address a service of ours vouched for is not
// recorded.
func (w *world) CallerAddress(*keytable.Record, string) string { return w.address }

// What follows is asked only of requests whose credential is at hand as text.

func (w *world) Ready() bool                         { return true }
func (w *world) Verify(jwt.Key, string, []byte) bool { return false }
func (w *world) Tokens() *token.Table                { return nil }
func (w *world) Keys() *apikey.Memo                  { return nil }
func (w *world) Peer() string                        { return "" }
func (w *world) Certificates() *clientcert.Memo      { return nil }
func (w *world) Authorization() string               { return "" }
func (w *world) Header(string) string                { return "" }

// windows are the places of an edge's windows: as many as an edge has, whatever the
// number of accounts and addresses.
type windows struct {
	values  map[sharedlimit.Place]slot
	version uint32
}

type slot struct {
	window  ratelimit.Window
	version uint32
}

// Get implements counter.Store.
func (s *windows) Get(p sharedlimit.Place) (ratelimit.Window, uint32) {
	v := s.values[p]
	return v.window, v.version
}

// Set implements counter.Store.
func (s *windows) Set(p sharedlimit.Place, w ratelimit.Window, version uint32) bool {
	old, there := s.values[p]
	if there && version != 0 && old.version != version {
		return false
	}
	s.version++
	kept := old.window
	if len(kept) != len(w) {
		kept = make(ratelimit.Window, len(w))
	}
	copy(kept, w)
	s.values[p] = slot{kept, s.version}
	return true
}
