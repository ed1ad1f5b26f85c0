package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/platform/limits/growth"
)

func share(n uint32) *uint32 { return &n }

// rollout is small with a second product, a third, and a change of its first route.
func rollout(change func(*Route)) Document {
	d := small()
	for _, name := range []string{"media-v2", "shadow"} {
		d.Products = append(d.Products, Product{Name: name, Upstreams: d.Products[0].Upstreams})
	}
	d.KeyHeaders = []string{"X-API-Key"}
	change(&d.Routes[0])
	return d
}

// What is wrong with traffic is named with its field; what is right is not.
func TestTrafficOfRoutesIsChecked(t *testing.T) {
	t.Parallel()
	moved := func(r *Route) { r.Product, r.Scope, r.Redirect = "", "", &Redirect{Host: "new.example"} }
	edits := func(e HeaderEdit) func(*Route) {
		return func(r *Route) { r.RequestHeaders = &e }
	}
	for what, c := range map[string]struct {
		change func(*Route)
		fields string // below the route
	}{
		"a canary":            {func(r *Route) { r.Split = []ProductVersion{{Product: "media-v2", Weight: share(10)}} }, ""},
		"a canary that waits": {func(r *Route) { r.Split = []ProductVersion{{Product: "media-v2", Weight: share(0)}} }, ""},
		"by weight and headers": {func(r *Route) {
			r.Split = []ProductVersion{{Product: "media-v2", Weight: share(10)}, {Product: "media-v2", Headers: []HeaderMatch{{Name: "x-version", Value: "2"}}}}
		}, ""},
		"more than all": {func(r *Route) {
			r.Split = []ProductVersion{{Product: "media-v2", Weight: share(60)}, {Product: "shadow", Weight: share(41)}}
		}, "split"},
		"much more than all": {func(r *Route) {
			r.Split = []ProductVersion{{Product: "media-v2", Weight: share(4294967295)}, {Product: "shadow", Weight: share(2)}}
		}, "split"},
		"an unknown version":  {func(r *Route) { r.Split = []ProductVersion{{Product: "media-v3", Weight: share(10)}} }, "split[0].product"},
		"a version of itself": {func(r *Route) { r.Split = []ProductVersion{{Product: "media", Weight: share(10)}} }, "split[0].product"},
		"a version twice": {func(r *Route) {
			r.Split = []ProductVersion{{Product: "shadow", Weight: share(1)}, {Product: "shadow", Weight: share(1)}}
		}, "split[1].product"},
		"no way to choose": {func(r *Route) { r.Split = []ProductVersion{{Product: "media-v2"}} }, "split[0].weight"},
		"both ways to choose": {func(r *Route) {
			r.Split = []ProductVersion{{Product: "media-v2", Weight: share(1), Headers: []HeaderMatch{{Name: "x-a"}}}}
		}, "split[0].headers"},
		"a bad header": {func(r *Route) {
			r.Split = []ProductVersion{{Product: "media-v2", Headers: []HeaderMatch{{Name: "x a"}}}}
		}, "split[0].headers[0].name"},
		"a split of an answer": {func(r *Route) { moved(r); r.Split = []ProductVersion{{Product: "media-v2", Weight: share(1)}} }, "split"},
		"too many versions":    {func(r *Route) { r.Split = make([]ProductVersion, maxVersions+1) }, "split"},
		"sticky": {func(r *Route) {
			r.Sticky, r.Split = "credential", []ProductVersion{{Product: "media-v2", Weight: share(1)}}
		}, ""},
		"sticky to what":     {func(r *Route) { r.Sticky = "account" }, "sticky sticky"},
		"a mirror":           {func(r *Route) { r.Mirror = &Mirror{Product: "shadow", Percent: share(5)} }, ""},
		"a mirror of itself": {func(r *Route) { r.Mirror = &Mirror{Product: "media"} }, "mirror.product"},
		"a mirror of a version": {func(r *Route) {
			r.Split, r.Mirror = []ProductVersion{{Product: "media-v2", Weight: share(1)}}, &Mirror{Product: "media-v2"}
		}, "mirror.product"},
		"a mirror to nobody":  {func(r *Route) { r.Mirror = &Mirror{Product: "nobody", Percent: share(101)} }, "mirror.percent mirror.product"},
		"a mirror of streams": {func(r *Route) { r.Streaming, r.Mirror = true, &Mirror{Product: "shadow"} }, "mirror"},
		"retries": {func(r *Route) {
			r.Retries = &Retries{Attempts: share(5), On: []uint32{503}, TryTimeout: "2s", AnyMethod: true}
		}, ""},
		"bad retries":          {func(r *Route) { r.Retries = &Retries{Attempts: share(11), On: []uint32{404}, TryTimeout: "soon"} }, "retries.attempts retries.on[0] retries.try_timeout"},
		"a try as long as all": {func(r *Route) { r.Timeout, r.Retries = "2s", &Retries{TryTimeout: "2s"} }, "retries.try_timeout"},
		"a redirect":           {moved, ""},
		"a redirect and more":  {func(r *Route) { r.Redirect = &Redirect{Host: "new.example"} }, "redirect"},
		"to where":             {func(r *Route) { moved(r); r.Redirect = &Redirect{} }, "redirect redirect.host"},
		"to any Host":          {func(r *Route) { moved(r); r.Redirect = &Redirect{Scheme: "https"} }, "redirect.host"},
		"to its own hosts":     {func(r *Route) { moved(r); r.Hosts, r.Redirect = []string{"a.example"}, &Redirect{Scheme: "https"} }, ""},
		"back for ever":        {func(r *Route) { moved(r); r.Hosts, r.Redirect = []string{"a.example"}, &Redirect{Path: r.Path} }, "redirect.path"},
		"a bad redirect": {func(r *Route) {
			moved(r)
			r.Redirect = &Redirect{Status: 200, Scheme: "ftp", Host: "a/b", Path: "/x/{y}"}
		}, "redirect.host redirect.path redirect.scheme redirect.status"},
		"with a line break": {func(r *Route) {
			moved(r)
			r.Redirect = &Redirect{Host: "a.example\r\nset-cookie: a=b", Prefix: "/a\r\n"}
		}, "redirect.host redirect.prefix"},
		"headers":        {edits(HeaderEdit{Set: map[string]string{"X-Account": "{account.id}", "X-Id": "{id} of {{{request.id}}}"}, Add: map[string]string{"via-edge": "100%"}, Remove: []string{"cookie"}}), ""},
		"injection":      {edits(HeaderEdit{Set: map[string]string{"x-a": "a\r\nx-b: c", "x-b\n": "1"}}), "request_headers.set.x-a request_headers.set.x-b\n"},
		"unknown names":  {edits(HeaderEdit{Set: map[string]string{"x-a": "{name}", "x-b": "{account.secret}", "x-c": "{", "x-d": "}"}}), "request_headers.set.x-a request_headers.set.x-b request_headers.set.x-c request_headers.set.x-d"},
		"who calls":      {edits(HeaderEdit{Set: map[string]string{"X-Sluice-Identity": "a"}, Remove: []string{"x-envoy-a"}}), "request_headers.remove[0] request_headers.set.X-Sluice-Identity"},
		"credentials":    {edits(HeaderEdit{Add: map[string]string{"Authorization": "a"}, Remove: []string{"x-payment"}}), "request_headers.add.Authorization request_headers.remove[0]"},
		"a key":          {edits(HeaderEdit{Add: map[string]string{"x-api-key": "a"}}), "request_headers"},
		"hop by hop":     {edits(HeaderEdit{Add: map[string]string{"Connection": "a"}, Remove: []string{"Transfer-Encoding", "host"}}), "request_headers.add.Connection request_headers.remove[0] request_headers.remove[1]"},
		"a header twice": {edits(HeaderEdit{Set: map[string]string{"x-a": "1"}, Remove: []string{"X-A"}}), "request_headers.remove[0]"},
		"nothing":        {edits(HeaderEdit{}), "request_headers"},
		"of answers": {func(r *Route) {
			r.ResponseHeaders = &HeaderEdit{Set: map[string]string{"cache-control": "no-store"}, Remove: []string{"server", "set-cookie"}}
		}, ""},
		"of answers that are ours": {func(r *Route) {
			r.ResponseHeaders = &HeaderEdit{Remove: []string{"X-RateLimit-Limit", "Access-Control-Allow-Origin", "content-encoding", "www-authenticate"}}
		}, "response_headers.remove[0] response_headers.remove[1] response_headers.remove[2] response_headers.remove[3]"},
		"headers of nothing": {func(r *Route) { moved(r); edits(HeaderEdit{Remove: []string{"a"}})(r) }, "request_headers"},
	} {
		d := rollout(c.change)
		var got []string
		for _, f := range d.Faults() {
			if f.Expected == "" && f.Issue != "is given twice" {
				t.Errorf("%s: %s %s: no remedy", what, f.Field, f.Issue)
			}
			got = append(got, strings.TrimPrefix(f.Field, "routes[0]."))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.fields {
			t.Errorf("%s: faults in %q, want %q", what, got, c.fields)
		}
	}
}

// Sticky routes may have so many different shares, since edges hold a list for each.
func TestSharesOfStickyRoutesAreBounded(t *testing.T) {
	t.Parallel()
	d := rollout(func(*Route) {})
	for i := range uint32(30) {
		d.Routes = append(d.Routes, Route{Name: fmt.Sprint("r", i), Path: fmt.Sprint("/r", i), Product: "media", Auth: []string{"none"}, Sticky: "credential",
			Split: []ProductVersion{{Product: "media-v2", Weight: share(i + 1)}}})
	}
	if got := d.Faults(); len(got) != 1 || !strings.HasSuffix(got[0].Field, ".split") {
		t.Error(got)
	}
}

func TestWhatAVersionHasItKeeps(t *testing.T) {
	t.Parallel()
	var had Share
	for _, weight := range []uint32{0, 5, 50, 100} {
		r := Route{Product: "a", Split: []ProductVersion{{Product: "b", Weight: share(weight)}}}
		shares, own := r.Shares()
		if got := shares[0]; own != 100-weight || got.To != 100 || got.From > 100-weight || had.To > 0 && got.From > had.From {
			t.Errorf("%d: %v, own %d", weight, got, own)
		}
		had = shares[0]
	}
}

// A version asks the same of callers as its route; it is told who calls in its own
// name, and the plan must include the route's product.
func TestVersionsAreJudgedAsTheirRoute(t *testing.T) {
	t.Parallel()
	d := rollout(func(r *Route) {
		r.Split = []ProductVersion{{Product: "media-v2", Weight: share(10)}, {Product: "media-v2", Headers: []HeaderMatch{{Name: "x-a"}}}}
	})
	p, err := d.Policy(1, "", ProvisionalNumbers(d))
	if err != nil {
		t.Fatal(err)
	}
	if p = policy.Parse(p.Encode()); p == nil || len(p.Routes) != 2+1+len(builtin) {
		t.Fatalf("%+v", p)
	}
	own, version := p.Routes[0], p.Routes[2]
	if version.Name != own.Name || version.Key() == own.Key() || version.Method() != "GET" || version.Scope != own.Scope || version.Grants != own.Grants ||
		version.Product != "media-v2" || version.Sold() != "media" || own.Sold() != "media" || own.Product != "media" {
		t.Errorf("%+v\n%+v", own, version)
	}
	before := version.Key()
	d.Routes[0].Split[0].Weight = share(50)
	if p, err = d.Policy(2, "", ProvisionalNumbers(d)); err != nil || p.Routes[2].Key() != before {
		t.Error("another weight makes another policy")
	}
}

func FuzzParseTemplate(f *testing.F) {
	for _, s := range []string{"", "plain", "{id}", "a {account.id} b {{c}} {request.id}", "{", "}", "{}", "{{{id}}}", "a\r\nb", strings.Repeat("{id}", 9), "{a.b}", "100%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var parts []TemplatePart
		var err error
		growth.Linear(t, len(s), 128, 4096, func() { parts, err = ParseTemplate(s) })
		var b strings.Builder
		for _, p := range parts {
			if p.Name != "" {
				b.WriteString("{" + p.Name + "}")
			} else {
				b.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.Text))
			}
		}
		if err == nil && b.String() != s || strings.ContainsAny(b.String(), "\r\n\x00") {
			t.Errorf("%q became %q, %v", s, b.String(), err)
		}
	})
}
