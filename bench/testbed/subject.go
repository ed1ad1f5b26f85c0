package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sluice.dev/sluice/bench/load"
	"sluice.dev/sluice/e2e/harness"
)

// Subject is one way to proxy to the upstream, and what was measured of it, turn by
// turn.
type Subject struct {
	Name    string
	Request load.Request
	PID     int       // its process, which does all its work
	Rate    []float64 // requests a second, closed loop
	CPU     []float64 // microseconds of CPU time a request, closed loop
	P50     []time.Duration
	P99     []time.Duration
}

// Ready waits until the subject answers as the upstream does, and puts it on its core.
func (s *Subject) Ready() error { return errors.Join(harness.Until(s.Answers), pin(s.PID, 0)) }

// Answers makes one request, which is answered as the upstream does.
func (s *Subject) Answers() error {
	a, err := harness.Ask(context.Background(), http.DefaultClient, http.MethodGet, "http://"+s.Request.Addr+s.Request.Path, s.Request.Key(), nil)
	if err == nil && (a.StatusCode != http.StatusOK || len(a.Text) != BodySize) {
		err = fmt.Errorf("%s answers %d with %d bytes", s.Name, a.StatusCode, len(a.Text))
	}
	return err
}

// Measure runs the closed loop for d, after a quarter of it to warm up.
func (s *Subject) Measure(conns int, d time.Duration) error {
	if _, err := load.Closed(s.Request, conns, d/4); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	before, err := cpuTime(s.PID)
	if err != nil {
		return err
	}
	r, err := load.Closed(s.Request, conns, d)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	after, err := cpuTime(s.PID)
	s.Rate = append(s.Rate, r.Rate())
	s.CPU = append(s.CPU, float64(after-before)/1000/float64(r.Requests))
	return err
}

// Alternate measures the CPU time of each of the list, turn by turn.
func Alternate(rounds, conns int, d time.Duration, list []*Subject) error {
	for round := range rounds {
		for i := range list {
			if err := list[(i+round)%len(list)].Measure(conns, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// Less gives a-b of each turn.
func Less(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}
