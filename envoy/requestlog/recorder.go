// Package requestlog records what happened to requests, from the lines that Envoy
// writes of them: all failures up to a rate, and a sample of the others.
//
// Writer stands between Envoy's output and the log that people read. It prints what
// they asked for and hands the rest to a Recorder, which chooses by the budgets of
// budget.go before it reads a line, keeps what it chose up to a bound, and sends it to
// the control plane twice a second. Nobody waits for anybody: what there is no room
// for is dropped and counted. How many lines Envoy writes follows what is wanted, by
// Sample, so that a request that is not recorded costs a look at a number.
package requestlog

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/filters/edgeapi"
)

const (
	sendEvery    = 500 * time.Millisecond
	defaultQueue = 2000 // of some 600 bytes, at most 4 KiB
	maxAccounts  = 200  // whose drops are told apart
)

// Config says what a Recorder does with what it has chosen.
type Config struct {
	// Edge is the name of this one.
	Edge string
	// Send brings a batch to the control plane, and must not take longer than ctx.
	Send func(ctx context.Context, b edgeapi.RequestBatch) error
	// SetSample tells Envoy of how many requests it is to write lines; nil: nobody is
	// told.
	SetSample func(ctx context.Context, s Sample) error
	// Queue is how many requests may wait while the control plane is away; the oldest
	// make room. 0: 2,000.
	Queue int
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: slog.Default
}

// Recorder keeps what happened to requests until it is sent. Its methods may be called
// from any goroutine.
type Recorder struct {
	cfg Config

	mu                            sync.Mutex
	failures, strangers, samples  budget
	queue                         []edgeapi.Request // oldest first
	dropped                       map[string]int64  // since it was last told, by account
	recordedTotal, droppedTotal   uint64
	malformedTotal                uint64
	linesOfFailures, linesOfOther int // since the last look
	failuresAreSampled            bool
	records                       recorder // for rehearsals
}

// New returns a recorder that sends when Run runs.
func New(c Config) *Recorder {
	if c.Queue == 0 {
		c.Queue = defaultQueue
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Recorder{cfg: c, dropped: map[string]int64{}, records: recorder{sampled: whole},
		failures: newBudget(failuresEach, failuresAll), strangers: newBudget(strangersEach, strangersAll), samples: newBudget(samplesEach, samplesAll)}
}

// add records the request of a line whose mark is cut off, if there is room.
func (r *Recorder) add(m mark, rest []byte, bad bool) {
	account := accountOf(rest)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records.add(m, rest, bad, r.cfg.Now())
	b, who := &r.samples, account
	if bad {
		r.linesOfFailures++
		r.failuresAreSampled = m.print == edgeapi.MarkNone[0]
		b = &r.failures
	} else {
		r.linesOfOther++
		if bytes.Contains(rest, []byte(`,"would_refuse":"`)) { // a failure, if all were enforced
			b = &r.failures
		}
	}
	if len(account) == 0 {
		if bad {
			b = &r.strangers
		}
		who = valueOf(rest, `"client":"`, `"`)
	}
	if !b.take(r.cfg.Now().Unix(), who) {
		if bad { // the others are a sample anyway
			r.drop(string(account), 1)
		}
		return
	}
	one, ok := parse(rest, m.record == edgeapi.MarkAll[0])
	if !ok {
		r.malformedTotal++
		return
	}
	r.recordedTotal++
	r.keep(one)
}

// accountOf is the account in a line, by which places are shared out; a request
// without a route has none.
func accountOf(rest []byte) []byte {
	if !bytes.Contains(rest, []byte(`,"route":"`)) {
		return nil
	}
	caller := valueOf(rest, `"caller":"`, `"`)
	_, account, _ := bytes.Cut(caller, []byte(";a="))
	if i := bytes.IndexByte(account, ';'); i >= 0 {
		account = account[:i]
	}
	return account
}

// keep puts requests into the queue, from which the oldest tenth goes if it is full.
func (r *Recorder) keep(list ...edgeapi.Request) {
	r.queue = append(r.queue, list...)
	if over := len(r.queue) - r.cfg.Queue; over > 0 {
		over = min(max(over, r.cfg.Queue/10), len(r.queue))
		for _, old := range r.queue[:over] {
			r.drop(old.Account, 1)
		}
		r.queue = append(r.queue[:0], r.queue[over:]...)
	}
}

// drop counts requests that are not recorded, by account as long as there are few.
func (r *Recorder) drop(account string, n int64) {
	r.droppedTotal += uint64(n)
	if _, known := r.dropped[account]; !known && len(r.dropped) >= maxAccounts {
		account = ""
	}
	r.dropped[account] += n
}

// Run sends until ctx ends, and then once more.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	sample, failing := whole, false
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = r.send(last, true)
			return
		case <-tick.C:
		}
		err := r.send(ctx, false)
		if err != nil && !failing {
			r.cfg.Log.Warn("requests are not being recorded: the control plane does not take them", "cause", err)
		}
		failing = err != nil
		if n%2 == 0 {
			sample = r.adjust(ctx, sample)
		}
	}
}

// send sends all that waits, a batch at a time. A batch that is not taken waits for the
// next time. last has the records of the present seconds sent too.
func (r *Recorder) send(ctx context.Context, last bool) error {
	for {
		b := r.take(last)
		if len(b.Requests) == 0 && len(b.Dropped) == 0 && len(b.Recorded) == 0 {
			return nil
		}
		if err := r.cfg.Send(ctx, b); err != nil {
			r.putBack(b)
			return err
		}
	}
}

// take takes the next batch out of the queue.
func (r *Recorder) take(last bool) edgeapi.RequestBatch {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.queue), edgeapi.MaxRequestBatch)
	b := edgeapi.RequestBatch{Edge: r.cfg.Edge, Dropped: r.dropped, Requests: append([]edgeapi.Request{}, r.queue[:n]...)}
	r.queue = append(r.queue[:0], r.queue[n:]...)
	r.dropped = map[string]int64{}
	b.Recorded = r.records.close(r.cfg.Now(), last)
	return b
}

// putBack returns a batch to the front of the queue.
func (r *Recorder) putBack(b edgeapi.RequestBatch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records.putBack(b.Recorded)
	since := r.queue
	r.queue = nil
	r.keep(append(b.Requests, since...)...)
	for account, n := range b.Dropped {
		r.droppedTotal -= uint64(n) // drop counts them anew
		r.drop(account, n)
	}
}

// adjust sets Envoy's sample by the lines of the last second. Failures that are printed
// come all.
func (r *Recorder) adjust(ctx context.Context, now Sample) Sample {
	r.mu.Lock()
	failures, others := r.linesOfFailures, r.linesOfOther
	r.linesOfFailures, r.linesOfOther = 0, 0
	sampled := r.failuresAreSampled
	r.mu.Unlock()
	next := Sample{adjusted(now.Success, others, recordedASecond), edgeapi.WholeSample}
	if sampled {
		next.Failure = adjusted(now.Failure, failures, 4*(failuresAll+strangersAll))
	}
	if next == now || r.cfg.SetSample == nil {
		return next
	}
	if err := r.cfg.SetSample(ctx, next); err != nil {
		r.cfg.Log.Debug("Envoy does not take the sample of requests", "cause", err)
		return now
	}
	r.mu.Lock()
	r.records.sampled = next
	r.mu.Unlock()
	return next
}

// Describe implements prometheus.Collector.
func (r *Recorder) Describe(c chan<- *prometheus.Desc) { prometheus.DescribeByCollect(r, c) }

// Collect implements prometheus.Collector.
func (r *Recorder) Collect(c chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counter := func(name, help string, n uint64) {
		c <- prometheus.MustNewConstMetric(prometheus.NewDesc("sluice_agent_requests_"+name, help, nil, nil), prometheus.CounterValue, float64(n))
	}
	counter("recorded_total", "Requests recorded for the request log.", r.recordedTotal)
	counter("dropped_total", "Failed requests that were not recorded, as there were too many or the control plane was away too long.", r.droppedTotal)
	counter("malformed_total", "Lines of requests that could not be read.", r.malformedTotal)
	c <- prometheus.MustNewConstMetric(prometheus.NewDesc("sluice_agent_requests_waiting", "Recorded requests that the control plane does not have yet.", nil, nil), prometheus.GaugeValue, float64(len(r.queue)))
}
