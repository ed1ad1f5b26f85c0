package config

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"sluice.dev/sluice/filters/decision"
)

// filled returns a value of a type that is not its zero value, and differs with n.
func filled(t *testing.T, typ reflect.Type, n int) reflect.Value {
	t.Helper()
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("s", n))
	case reflect.Bool:
		v.SetBool(n%2 == 1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Slice:
		v = reflect.Append(v, filled(t, typ.Elem(), n))
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
		v.Elem().Set(filled(t, typ.Elem(), n))
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(filled(t, typ.Key(), n), filled(t, typ.Elem(), n))
	case reflect.Struct:
		for i := range typ.NumField() {
			v.Field(i).Set(filled(t, typ.Field(i).Type, n))
		}
	default:
		t.Fatalf("a field is of kind %s", typ.Kind())
	}
	return v
}

// A field that Equal did not look at would go on being served as it was.
func TestEqualLooksAtEachFieldOfARoute(t *testing.T) {
	t.Parallel()
	typ := reflect.TypeFor[Route]()
	whole := func() Route { return filled(t, typ, 1).Interface().(Route) }
	if !whole().Equal(whole()) || !(Route{}).Equal(Route{}) {
		t.Error("a route is not equal to itself")
	}
	for i := range typ.NumField() {
		for _, n := range []int{0, 2} {
			r := whole()
			f := reflect.ValueOf(&r).Elem().Field(i)
			f.SetZero()
			if n > 0 {
				f.Set(filled(t, typ.Field(i).Type, n))
			}
			if whole().Equal(r) || r.Equal(whole()) {
				t.Errorf("another %s is not seen", typ.Field(i).Name)
			}
		}
	}
}

func TestDocumentsAreEqual(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Document){
		"a route": func(d *Document) { d.Routes[0].Path = "/v1/other" },
		"order":   func(d *Document) { slices.Reverse(d.Routes) },
		"a plan":  func(d *Document) { d.Plans[0].Limits["default"] = Limit{PerMinute: 11} },
		"a scope": func(d *Document) { d.Scopes = nil },
	} {
		d := small()
		change(&d)
		if d.Equal(small()) || small().Equal(d) {
			t.Errorf("%s is not seen", what)
		}
	}
	if !small().Equal(small()) {
		t.Error("a document is not equal to itself")
	}
}

// edited is d with one random edit, which may be a bad one. It shares with d what
// it does not change.
func edited(random *rand.Rand, d Document) Document {
	pick := func(s ...string) string { return s[random.IntN(len(s))] }
	d.Routes, d.Products = slices.Clone(d.Routes), slices.Clone(d.Products)
	r := Route{Name: fmt.Sprintf("r%d", random.IntN(12)), Path: pick("/v1/a", "/v1/a/{id}", "/v1/b/{x}/c", "/v1/*", "bad"), Product: pick("media", "media", "none"),
		Auth: []string{pick("key", "key", "basic")}, Methods: []string{pick("GET", "POST", "get")}, Scope: pick("", "", "streams:read", "no:scope"), Class: pick("", "default", "bulk")}
	switch at := random.IntN(len(d.Routes)); random.IntN(7) {
	case 0, 1:
		d.Routes = slices.Insert(d.Routes, at, r)
	case 2, 3:
		d.Routes[at] = r
	case 4:
		if len(d.Routes) > 1 {
			d.Routes = slices.Delete(d.Routes, at, at+1)
		}
	case 5:
		d.Products[0].Name = pick("media", "voice")
	case 6:
		d.Classes = []Class{{Name: "default", PerMinute: 60 + random.Uint32N(3)}, {Name: pick("bulk", "batch"), PerMinute: 5}}
	}
	return d
}

func TestWhatIsRememberedChangesNoFault(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	faulty, good := 0, 0
	var nobody *Checker
	for range 40 {
		d, c := small(), &Checker{}
		for range 25 {
			next := edited(random, d)
			want := next.Faults()
			for _, got := range [][]decision.Detail{c.Faults(next), c.Faults(next), nobody.Faults(next)} {
				if !slices.Equal(got, want) {
					t.Fatalf("faults %v, want %v, of %+v", got, want, next.Routes)
				}
			}
			if len(want) > 0 {
				faulty++
				continue
			}
			good++
			d = next
		}
	}
	if faulty < 50 || good < 50 {
		t.Errorf("%d documents had faults, %d had none", faulty, good)
	}
}

func TestWhatIsRememberedChangesNoPolicy(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	shared := 0
	for range 20 {
		d, m := small(), &Policies{}
		last, err := m.Policy(d, 0, "http://gw", ProvisionalNumbers(d))
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			next := edited(random, d)
			if len(next.Faults()) > 0 {
				continue
			}
			d = next
			want, err := d.Policy(0, "http://gw", ProvisionalNumbers(d))
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Policy(d, 0, "http://gw", ProvisionalNumbers(d))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%v: policy %+v, want %+v", err, got, want)
			}
			if got == last {
				shared++
			}
			last = got
		}
	}
	if shared < 10 {
		t.Errorf("only %d policies were those of before", shared)
	}
}

// What nobody's decisions go by leaves the policy as it is.
func TestAnotherPathIsNoOtherPolicy(t *testing.T) {
	t.Parallel()
	var m Policies
	d := small()
	one, err := m.Policy(d, 0, "", ProvisionalNumbers(d))
	if err != nil {
		t.Fatal(err)
	}
	d.Routes = slices.Clone(d.Routes)
	d.Routes[0].Path = "/v1/streams/{id}/embed"
	if two, err := m.Policy(d, 0, "", ProvisionalNumbers(d)); err != nil || two != one {
		t.Errorf("%v: another policy after another path", err)
	}
	d.Routes = slices.Clone(d.Routes)
	d.Routes[0].BodyLimit = 7
	if two, err := m.Policy(d, 0, "", ProvisionalNumbers(d)); err != nil || two == one {
		t.Errorf("%v: the same policy after another limit", err)
	}
}
