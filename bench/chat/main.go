// Command chat measures what edge and runtime add to a streamed completion: the
// time to the first event and the delay of each chunk, one stream at a time and
// with many open at once, and the memory of a stream.
//
// The model is this program once more, in a process of its own. It writes into
// each chunk when it sent it, so that the delay of a chunk is one subtraction on
// one clock. The same client
// asks the model directly, the runtime alone, edge and runtime together, and
// other public gateways (others.go), turn by turn in one run.
//
//	make bench, or: withpg go run ./bench/chat
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/bench/load"
	"sluice.dev/sluice/e2e/harness"
)

var (
	rounds  = flag.Int("rounds", 3, "turns of each subject")
	single  = flag.Int("single", 200, "streams one at a time, a turn")
	open    = flag.Int("open", 500, "streams open at once")
	length  = flag.Int("chunks", 30, "chunks of each open stream")
	gap     = flag.Duration("gap", 100*time.Millisecond, "time between the chunks of an open stream")
	beside  = flag.Bool("beside", true, "measure other public gateways too")
	leavers = flag.Int("leavers", 50, "clients that leave in the middle, a turn")
	address = flag.String("model", "127.0.0.1:0", "where the model listens")
	asModel = flag.Bool("serve", false, "be the model")
)

// subject is one way to reach the model.
type subject struct {
	name  string
	base  string // ends before /chat/completions
	key   string
	model string
	extra []string // headers, as Name:value
	pids  []int    // processes whose memory counts

	first, firstBusy, chunks, cancel durations
	memory                           []int64 // bytes a stream
	failed                           int
}

func main() {
	flag.Parse()
	work := run
	if *asModel {
		work = func() error { return serve(*address, os.Stdout) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/chat:", err)
		os.Exit(1)
	}
}

// run brings everything up, takes turns, and prints the table.
func run() error {
	m, err := startModel(*address)
	if err != nil {
		return err
	}
	defer m.Kill()
	b, err := startStack(m.base)
	if err != nil {
		return err
	}
	defer b.Close()
	subjects := append([]*subject{{name: "direct", base: m.base, model: "m"}}, b.subjects...)
	for _, s := range subjects {
		if err := s.works(); err != nil {
			return err
		}
	}
	// A gateway that cannot be had here is named in the table all the same.
	var absent []string
	for _, o := range others {
		if !*beside {
			continue
		}
		s, stop, err := o.begin(m.base)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			absent = append(absent, o.name)
			continue
		}
		defer stop()
		subjects = append(subjects, s)
	}
	for range *rounds {
		for _, s := range subjects {
			s.turn(m)
		}
		slices.Reverse(subjects[1:])
	}
	report(subjects, absent)
	return nil
}

// works waits until a stream comes through.
func (s *subject) works() error {
	if err := harness.Until(func() error { return s.stream(nil, nil, 1, 0) }); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// turn measures a subject once, alone and busy.
func (s *subject) turn(m *model) {
	for range *single {
		s.note(s.stream(&s.first, nil, 3, 0))
	}
	for range *leavers {
		s.note(s.leave(m))
	}
	before := s.rss()
	var all sync.WaitGroup
	peak := make(chan int64, 1)
	all.Go(func() {
		time.Sleep(time.Duration(*length) * *gap / 2)
		peak <- s.rss()
	})
	for i := range *open {
		all.Go(func() {
			time.Sleep(*gap * time.Duration(i) / time.Duration(*open)) // chunks at all times, not all at one
			s.note(s.stream(nil, &s.chunks, *length, *gap))
		})
	}
	all.Go(func() { // new streams while the others are open
		for end := time.Now().Add(time.Duration(*length-5) * *gap); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			s.note(s.stream(&s.firstBusy, nil, 3, 0))
		}
	})
	all.Wait()
	s.memory = append(s.memory, max(0, <-peak-before)/int64(*open))
}

// failures guards the counts of failed streams.
var failures sync.Mutex

// note counts a stream that failed, and shows the first of a subject.
func (s *subject) note(err error) {
	if err != nil {
		failures.Lock()
		defer failures.Unlock()
		if s.failed++; s.failed == 1 {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
		}
	}
}

// report prints the table, and what each subject adds to the direct way.
func report(subjects []*subject, absent []string) {
	base := subjects[slices.IndexFunc(subjects, func(s *subject) bool { return s.name == "direct" })]
	fmt.Printf("%d turns; %d streams one at a time, %d open at once with a chunk every %v\n\n", *rounds, *single, *open, *gap)
	fmt.Println("| subject | first event p50 | p99 | first event, busy p50 | p99 | chunk, busy p50 | p99 | client leaves, model knows p50 | p99 | memory a stream | failed |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, s := range subjects {
		fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %d |\n", s.name, s.first.at(50), s.first.at(99),
			s.firstBusy.at(50), s.firstBusy.at(99), s.chunks.at(50), s.chunks.at(99), s.cancel.at(50), s.cancel.at(99), s.size(), s.failed)
	}
	for _, name := range absent {
		fmt.Printf("| %s | not to be had here | | | | | | | | | |\n", name)
	}
	for _, s := range subjects {
		if s != base {
			fmt.Printf("| added by %s | %s | %s | %s | %s | %s | %s | | | | |\n", s.name, s.first.at(50)-base.first.at(50), s.first.at(99)-base.first.at(99),
				s.firstBusy.at(50)-base.firstBusy.at(50), s.firstBusy.at(99)-base.firstBusy.at(99), s.chunks.at(50)-base.chunks.at(50), s.chunks.at(99)-base.chunks.at(99))
		}
	}
}

// size is the median memory of a stream, in the processes that are known.
func (s *subject) size() string {
	if len(s.pids) == 0 {
		return "–"
	}
	return fmt.Sprintf("%d KiB", load.Median(s.memory)>>10)
}

// durations are measurements, in any order.
type durations struct {
	mu  sync.Mutex
	all []time.Duration
}

// add takes a measurement in.
func (d *durations) add(v time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, v)
}

// at returns a percentile.
func (d *durations) at(percent int) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return load.Quantile(d.all, float64(percent)/100).Round(time.Microsecond)
}
