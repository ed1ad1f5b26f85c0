package recording

import (
	"fmt"
	"reflect"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func some(n int) Block {
	b := Block{Seen: [2]uint64{800, 3}, Lost: 7}
	for i := range n {
		b.Requests = append(b.Requests, Request{ID: [16]byte{byte(i), 1}, Time: 1_780_000_000_000 + int64(i*37%11), Method: "GET", Host: "api.example.com", Path: fmt.Sprint("/v1/things/", i%5),
			Route: "things", Account: "acct_1", Credential: fmt.Sprint("key_", i%3), Scopes: "a:b,c:d", Client: "192.0.2.1", Status: 200, In: uint64(i), Out: 1 << 40})
	}
	return b
}

func TestABlockSurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, MaxRequests} {
		want := some(n)
		raw := want.Append(nil)
		got, ok := Parse(raw)
		if len(got.Requests) == 0 {
			got.Requests = nil
		}
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%d requests: %v", n, ok)
		}
		if n > 1 && len(raw)/n > 45 {
			t.Errorf("%d bytes a request", len(raw)/n)
		}
		for cut := range min(len(raw), 300) {
			if _, ok := Parse(raw[:cut]); ok {
				t.Fatalf("a block cut to %d bytes was read", cut)
			}
		}
	}
}

func TestPathsAreKeptAsSums(t *testing.T) {
	t.Parallel()
	s := NewSummer([]byte("key"))
	list := Segments(s.Path("/v1/users/ann@example.com/"))
	if len(list) != 4 || list[0] != s.Segment("v1") || list[2] != s.Segment("ann@example.com") || list[3] != (Sum{}) || list[2] == NewSummer([]byte("other")).Segment("ann@example.com") {
		t.Errorf("%v", list)
	}
	for _, path := range []string{"", "*", "no/slash", "/" + string(make([]byte, maxPath)), "/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/0/1/2/3"} {
		if s.Path(path) != "" || Segments(s.Path(path)) != nil {
			t.Errorf("%.20s is told apart", path)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(some(0).Append(nil))
	f.Add(some(20).Append(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		growth.Linear(t, len(raw), 32, 1<<10, func() { Parse(raw) })
		b, ok := Parse(raw)
		if !ok {
			return
		}
		if again, ok := Parse(b.Append(nil)); !ok || !reflect.DeepEqual(again, b) {
			t.Errorf("%+v is read as %+v", b, again)
		}
	})
}
