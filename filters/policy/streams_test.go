package policy

import (
	"fmt"
	"reflect"
	"testing"
)

// watching is sample with routes whose connections are watched.
func watching() *Policy {
	p := sample()
	p.Routes[0].Stream, p.Routes[2].Stream = Upgrades, Watched
	p.Plans[0].Limits[1].Connections, p.Plans[1].Limits[0].ConnectionsPerKey = 100, 7
	return p
}

func TestWatchedRoutesAreRead(t *testing.T) {
	t.Parallel()
	for _, headers := range [][]string{nil, {"x-api-key"}} {
		want := watching()
		want.KeyHeaders = headers
		b := want.Encode()
		if got := Parse(b); got == nil || !want.index() || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v", got)
		}
		for n := len(sample().Encode()) + 1; n < len(b); n++ {
			if p := Parse(b[:n]); p != nil && p.Routes[0].Stream == Upgrades {
				t.Errorf("cut to %d of %d bytes: accepted", n, len(b))
			}
		}
		if Parse(append(b, 0)) != nil {
			t.Error("padded: accepted")
		}
	}
}

// A policy that watches nothing has the bytes of before, which older edges read.
func TestWithoutWatchedRoutesNothingIsAdded(t *testing.T) {
	t.Parallel()
	p := sample()
	before := len(p.Encode())
	p.Plans[0].Limits[0].Connections = 3
	if n := len(p.Encode()); n != before {
		t.Errorf("%d bytes more", n-before)
	}
}

func TestStreamsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	limits := make([]byte, 8) // of two plans with two classes each
	for name, tail := range map[string][]byte{
		"none watched": {0}, "of a route that is not there": {1, 100, 1}, "not watched": {1, 0, 0},
		"in a way that is not known": {1, 0, 3}, "more than can be": {3, 0, 1, 0, 1},
	} {
		b := append(append(sample().Encode(), 0, 0), append(tail, limits...)...)
		if Parse(b) != nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if p := Parse(append(append(sample().Encode(), 0, 0), append([]byte{1, 0, 1}, limits...)...)); p == nil || fmt.Sprint(p.Routes[0].Stream) != "1" {
		t.Error("the tail that the others differ from is refused")
	}
}
