package relay

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// outOf is a replica that says in turn what it is told to: a status, or 0 for none; the
// last again and again.
type outOf struct{ statuses []int }

func (o *outOf) RoundTrip(*http.Request) (*http.Response, error) {
	status := o.statuses[0]
	if len(o.statuses) > 1 {
		o.statuses = o.statuses[1:]
	}
	if status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("answer"))}, nil
}

// An authority asks once: while a replica starts, the question waits for it.
func TestChallengesWaitForAReplica(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replica []int
		waiting int // questions before
		want    int // 0: an error
	}{
		"it answers":                      {[]int{200}, 0, 200},
		"it knows none":                   {[]int{404, 200}, 0, 404},
		"it is away, and then starts":     {[]int{0, 0, 503, 200}, 0, 200},
		"it stays away":                   {[]int{0}, 0, 0},
		"it stays without its database":   {[]int{503}, 0, 503},
		"so many wait that it is a flood": {[]int{0, 200}, maxPatient, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &Relay{upstreams: &upstreams{http: &http.Client{Transport: &outOf{c.replica}}}, patient: make(chan struct{}, maxPatient)}
				for range c.waiting {
					r.patient <- struct{}{}
				}
				status, _, err := r.askChallenge(context.Background(), "/challenge")
				if status != c.want || (err != nil) != (c.want == 0) {
					t.Errorf("%d, %v; want %d", status, err, c.want)
				}
				if len(r.patient) != c.waiting {
					t.Errorf("%d places are taken, want %d", len(r.patient), c.waiting)
				}
			})
		})
	}
}
