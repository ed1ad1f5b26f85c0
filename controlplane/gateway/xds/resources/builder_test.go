package resources

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"sluice.dev/sluice/controlplane/gateway/config"
)

var where = Addresses{Gateway: "127.0.0.1:1", Runtime: "127.0.0.1:2"}

// encoded is everything that edges get of a set, as bytes by kind and name.
func encoded(t testing.TB, s *Set) map[string][]byte {
	t.Helper()
	ls, err := s.Listeners(where)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for kind, of := range map[string]any{"listener": ls, "route": s.Routes, "cluster": s.Clusters, "endpoint": s.Endpoints, "filter": s.Filters, "secret": s.Secrets} {
		for it := reflect.ValueOf(of).MapRange(); it.Next(); {
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(it.Value().Interface().(proto.Message))
			if err != nil {
				t.Fatal(err)
			}
			all[kind+" "+it.Key().String()] = b
		}
	}
	return all
}

// edit changes one thing of d, in copies.
func edit(random *rand.Rand, d config.Document) config.Document {
	pick := func(s ...string) string { return s[random.IntN(len(s))] }
	d.Routes, d.Products = slices.Clone(d.Routes), slices.Clone(d.Products)
	at := random.IntN(len(d.Routes))
	r := &d.Routes[at]
	switch random.IntN(15) {
	case 0, 1:
		r.Path = fmt.Sprintf("/v1/%s/%s%d", pick("a", "b", "streams"), pick("{id}/x", "y", "{id}/{part}/z"), random.IntN(1000))
	case 2:
		r.Timeout = config.Duration(fmt.Sprintf("%ds", 1+random.IntN(9)))
	case 3:
		r.BodyLimit = random.Uint64N(9) // another revision
	case 4:
		r.Methods = [][]string{nil, {"GET"}, {"POST"}, {"HEAD"}, {"GET", "POST"}}[random.IntN(5)]
	case 5:
		d.Routes = slices.Delete(d.Routes, at, at+1)
	case 6:
		fresh := *r
		fresh.Name, fresh.Path = fmt.Sprintf("fresh%d", random.IntN(1<<30)), fmt.Sprintf("/v1/fresh/{id}/%d", random.IntN(1<<30))
		d.Routes = slices.Insert(d.Routes, at, fresh)
	case 7:
		p := &d.Products[random.IntN(len(d.Products))]
		if p.CORS == nil {
			p.CORS = &config.CORS{Origins: []string{"https://app.example"}}
		} else {
			p.CORS = nil
		}
	case 8:
		n := random.Uint32N(3)
		d.Products[random.IntN(len(d.Products))].Retries = &n
	case 9:
		d.AccessLog, d.AnonymousPerMinute, d.TrustedProxies = pick("all", "off", "failures"), random.Uint32N(3), random.Uint32N(2)
		d.KeyHeaders = [][]string{nil, {"X-API-Key"}}[random.IntN(2)]
	case 10, 11:
		weight := 10 * random.Uint32N(4)
		r.Sticky, r.Split = pick("", "credential"), []config.ProductVersion{{Product: pick("chat", "guarded", "open"), Weight: &weight}, {Product: "open", Headers: []config.HeaderMatch{{Name: "x-v"}}}}
		if weight == 0 {
			r.Sticky, r.Split = "", nil
		}
	case 12:
		r.Mirror = []*config.Mirror{nil, {Product: "open"}, {Product: "guarded"}}[random.IntN(3)]
	case 13:
		r.Retries = []*config.Retries{nil, {On: []uint32{503}}, {AnyMethod: true}}[random.IntN(3)]
	case 14:
		r.Compress = !r.Compress
		r.ResponseHeaders = []*config.HeaderEdit{nil, {Set: map[string]string{"x-a": "{account.id}"}}}[random.IntN(2)]
	}
	return d
}

// However the document came to be, edges get the same of it, so replicas agree.
// What was built before stays as it was.
func TestBuilderBuildsWhatBuildDoes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	o := Options{Addresses: map[string][]string{"media": {"10.0.0.1:80"}}, DocsBase: "https://api.example"}
	for range 4 {
		b, d := NewBuilder(o), everything()
		var policies config.Policies
		type past struct {
			set  *Set
			were map[string][]byte
		}
		var all []past
		for range 40 {
			if next := edit(random, d); len(next.Faults()) == 0 {
				d = next
			}
			p, err := policies.Policy(d, 0, "https://api.example", config.ProvisionalNumbers(d))
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.Build(d, p)
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := Build(d, p, o)
			if err != nil {
				t.Fatal(err)
			}
			same(t, encoded(t, got), encoded(t, fresh))
			all = append(all, past{got, encoded(t, got)})
		}
		for _, p := range all {
			same(t, encoded(t, p.set), p.were)
		}
	}
}

// same compares encoded sets.
func same(t *testing.T, got, want map[string][]byte) {
	t.Helper()
	if names, wanted := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(names, wanted) {
		t.Fatalf("there are %v, want %v", names, wanted)
	}
	for name, b := range want {
		if !bytes.Equal(got[name], b) {
			t.Fatalf("%s differs", name)
		}
	}
}

// A change of one route makes that one, and its list, anew; nothing of an older
// document is kept.
func TestBuilderKeepsTheLastDocumentOnly(t *testing.T) {
	t.Parallel()
	d := everything()
	p, err := d.Policy(0, "", config.ProvisionalNumbers(d))
	if err != nil {
		t.Fatal(err)
	}
	b := NewBuilder(Options{Addresses: map[string][]string{"media": {"10.0.0.1:80"}}})
	first, err := b.Build(d, p)
	if err != nil {
		t.Fatal(err)
	}
	d.Routes = slices.Clone(d.Routes[1:])
	d.Routes[0].Timeout = "4s"
	second, err := b.Build(d, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.made) != len(d.Routes) || second.lists.was != nil {
		t.Errorf("%d routes are kept of %d", len(second.made), len(d.Routes))
	}
	for _, r := range d.Routes {
		if was, is := first.made[r.Name], second.made[r.Name]; (was == is) != (r.Name != d.Routes[0].Name) {
			t.Errorf("route %s: made anew: %v", r.Name, was != is)
		}
	}
	for _, pr := range d.Products {
		if first.Clusters[pr.Name] != second.Clusters[pr.Name] {
			t.Errorf("the cluster of %s was made anew", pr.Name)
		}
	}
}
