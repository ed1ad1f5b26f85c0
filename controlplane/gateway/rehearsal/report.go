package rehearsal

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// Report says what a document would have done to the requests of a while.
type Report struct {
	Version int64           `json:"version"` // that is in force, and compared with
	Changes []config.Change `json:"changes"` // that the document would make
	Record  Record          `json:"record"`
	// Refused, Allowed, Moved and Otherwise are what would be another outcome, by what
	// it is: requests that the product gets now and would not, that it would get and
	// does not, that would be of another product, route or class, and that would be
	// refused as now for another reason. Most requests first.
	Refused   Part `json:"refused"`
	Allowed   Part `json:"allowed"`
	Moved     Part `json:"moved"`
	Otherwise Part `json:"otherwise"`
	// Undetermined are requests of which the record does not say enough.
	Undetermined Part `json:"undetermined"`
	// Limits are those that would refuse what they let through now.
	Limits     []Bite `json:"limits"`
	MoreLimits int    `json:"more_limits,omitempty"` // that are not listed
	// Notes say what cannot be foreseen of this change.
	Notes []string `json:"notes"`
}

// Record says what the answer rests on.
type Record struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Edges int       `json:"edges"`
	// Recorded are the requests that were tried; Requests how many they stand for.
	Recorded int64 `json:"recorded"`
	Requests int64 `json:"requests"`
	// Complete says that each request was recorded. Otherwise counts are estimates.
	Complete bool  `json:"complete"`
	Lost     int64 `json:"lost,omitempty"` // requests whose records did not arrive
	// Agreeing is of how many of Recorded the document in force, tried the same way,
	// says what became of them.
	Agreeing int64 `json:"agreeing"`
}

// Part are the requests of one kind of difference.
type Part struct {
	Requests int64     `json:"requests"`
	Accounts int       `json:"accounts"`
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"` // findings that are not listed
}

// Finding are requests with the same difference.
type Finding struct {
	Requests int64  `json:"requests"`
	Method   string `json:"method"`
	Path     string `json:"path,omitempty"` // of the route: a template
	Route    string `json:"route"`          // under the document
	Was      string `json:"was,omitempty"`  // the route now, if it is another
	Product  string `json:"product,omitempty"`
	Before   string `json:"before,omitempty"` // the product and class now, if they are others
	Class    string `json:"class,omitempty"`
	Code     string `json:"code,omitempty"` // with which it would be refused, or is now
	Reason   string `json:"reason"`
	// Accounts are those with the most requests; MoreAccounts are not listed. Requests of
	// callers whom nobody knows are in neither.
	Accounts     []Caller  `json:"accounts"`
	MoreAccounts int       `json:"more_accounts,omitempty"`
	Examples     []Example `json:"examples"`
}

// Caller is an account with the credentials that it used.
type Caller struct {
	Account     string       `json:"account_id"`
	Requests    int64        `json:"requests"`
	Credentials []Credential `json:"credentials"`
}

// Credential is a key, by its id, or a token.
type Credential struct {
	ID       string `json:"id"`
	Requests int64  `json:"requests"`
}

// Example is one of the requests.
type Example struct {
	ID   string    `json:"id,omitempty"` // its X-Request-ID
	Time time.Time `json:"time"`
}

// Bite is a limit that would refuse requests in a minute.
type Bite struct {
	Minute    time.Time `json:"minute"`
	Account   string    `json:"account_id,omitempty"` // empty: a limit of an address
	Key       string    `json:"key_id,omitempty"`     // of a key's own limit
	Limit     string    `json:"limit"`                // its class, key or address
	PerMinute uint32    `json:"per_minute"`
	Refused   int64     `json:"refused"`
}

// Bounds of an answer.
const (
	maxFindings    = 50
	maxCallers     = 10
	maxCredentials = 5
	maxBites       = 100
	// MaxExamples is how many examples there may be of a finding.
	MaxExamples = 1000
	// maxTold bounds what is kept to tell of it, each of findings, their accounts and
	// credentials, and limits.
	maxTold = 20_000
)

// group collects a finding.
type group struct {
	Finding
	callers map[string]*Caller
	keys    map[string]map[string]int64
}

// part collects a Part.
type part struct {
	requests int64
	accounts map[string]bool
	groups   map[findingKey]*group
}

// findingKey is what tells findings apart.
type findingKey struct{ method, path, route, was, product, before, class, code, reason string }

// add counts n requests of a difference.
func (p *part) add(key findingKey, r *request, n int64, examples int) {
	if p.groups == nil {
		p.accounts, p.groups = map[string]bool{}, map[findingKey]*group{}
	}
	p.requests += n
	if r.Account != "" && len(p.accounts) < maxTold {
		p.accounts[r.Account] = true
	}
	g := p.groups[key]
	if g == nil {
		if len(p.groups) >= maxTold/10 {
			return
		}
		g = &group{Finding: Finding{Examples: []Example{},
			Method: key.method, Path: key.path, Route: key.route, Was: key.was, Product: key.product, Before: key.before, Class: key.class, Code: key.code, Reason: key.reason},
			callers: map[string]*Caller{}, keys: map[string]map[string]int64{}}
		p.groups[key] = g
	}
	g.Requests += n
	if len(g.Examples) < examples {
		g.Examples = append(g.Examples, Example{r.id(), time.UnixMilli(r.Time).UTC()})
	}
	g.count(r, n)
}

func (g *group) count(r *request, n int64) {
	if r.Account == "" {
		return
	}
	if g.callers[r.Account] == nil {
		if len(g.callers) >= maxTold/10 {
			return
		}
		g.callers[r.Account], g.keys[r.Account] = &Caller{Account: r.Account}, map[string]int64{}
	}
	g.callers[r.Account].Requests += n
	if keys := g.keys[r.Account]; keys[r.Credential] > 0 || len(keys) < maxTold/100 {
		keys[r.Credential] += n
	}
}

// told is the part as it is answered.
func (p *part) told() Part {
	out := Part{Requests: p.requests, Accounts: len(p.accounts), Findings: []Finding{}}
	for _, g := range p.groups {
		f := g.Finding
		f.Accounts, f.MoreAccounts = g.told()
		out.Findings = append(out.Findings, f)
	}
	slices.SortFunc(out.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Route, b.Route), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Reason, b.Reason))
	})
	if out.More = max(0, len(out.Findings)-maxFindings); out.More > 0 {
		out.Findings = out.Findings[:maxFindings]
	}
	return out
}

func (g *group) told() (list []Caller, more int) {
	list = []Caller{}
	for account, c := range g.callers {
		one := *c
		for id, n := range g.keys[account] {
			one.Credentials = append(one.Credentials, Credential{id, n})
		}
		slices.SortFunc(one.Credentials, func(a, b Credential) int { return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.ID, b.ID)) })
		one.Credentials = one.Credentials[:min(len(one.Credentials), maxCredentials)]
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Caller) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Account, b.Account))
	})
	if more = max(0, len(list)-maxCallers); more > 0 {
		list = list[:maxCallers]
	}
	return list, more
}
