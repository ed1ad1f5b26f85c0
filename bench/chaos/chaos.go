// Command chaos proves the platform under fire: two control planes, two workers,
// three edges, runtime, media product and PostgreSQL run as in production, clients
// use all of it, and parts are killed, frozen, cut off, slowed and starved
// meanwhile. Then an accountant compares what clients saw with what is stored. It
// prints one table, and fails if a promise was broken.
//
//	make chaos            # ten minutes
//	make chaos SEED=42    # the faults of that seed once more
//	make chaos FAILOVER=10  # PostgreSQL's primary is lost, and its standby takes over
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/bench/chaos/actors"
	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/fleet"
	"sluice.dev/sluice/bench/chaos/plan"
	"sluice.dev/sluice/e2e/harness"
	"sluice.dev/sluice/platform/process/pause"
	"sluice.dev/sluice/workers/webhooks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := config{out: os.Stdout, disk: os.Geteuid() == 0, siege: 20 * time.Second}
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano())%1_000_000, "of the faults and of what clients do")
	flag.DurationVar(&c.length, "for", 10*time.Minute, "how long things go wrong")
	flag.StringVar(&c.keep, "keep", "", "folder for data and logs, made and kept; empty: a temporary one, kept if a promise is broken")
	only := flag.String("only", "", "the one kind of fault, as the plan writes it, such as 'kill -9'; empty: every kind")
	flag.IntVar(&c.drills, "failover", 0, "in place of the faults of a seed: how often the primary of PostgreSQL is killed and its synchronous standby promoted")
	flag.Parse()
	c.only = plan.Kind(*only)
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// config is one run.
type config struct {
	seed   uint64
	length time.Duration
	keep   string
	only   plan.Kind     // empty: every kind
	disk   bool          // an edge's disk can be filled
	slow   bool          // fewer requests
	faults []plan.Fault  // nil: those of the seed
	drills int           // failovers in place of faults; 0: none
	pair   bool          // PostgreSQL has a standby, as it has in a drill
	siege  time.Duration // how long a hostile tenant attacks when all is well again
	out    io.Writer
}

// errBroken is the error of a run in which a promise was broken; the table says which.
var errBroken = errors.New("a promise was broken")

func run(ctx context.Context, c config) (err error) {
	dir, err := c.folder()
	if err != nil {
		return err
	}
	receiver := actors.NewReceiver(c.seed)
	defer receiver.Close()
	f, err := fleet.Start(ctx, fleet.Config{Dir: dir, Receiver: receiver.Addr(), TLS: true, Disk: c.disk && c.drills == 0, Standby: c.pair || c.drills > 0})
	if err != nil {
		return fmt.Errorf("the platform does not start; logs are in %s: %w", dir, err)
	}
	verdict, err := c.judge(ctx, f, receiver)
	err = errors.Join(err, f.Stop(), audit.Print(c.out, verdict))
	if audit.Broken(verdict) > 0 {
		err = errors.Join(err, errBroken)
	}
	if err != nil {
		return fmt.Errorf("%w; seed %d, logs are in %s", err, c.seed, dir)
	}
	if c.keep == "" {
		return os.RemoveAll(dir)
	}
	return nil
}

// folder is where data and logs go. PostgreSQL runs as another user, who must
// be able to enter it.
func (c config) folder() (string, error) {
	if err := harness.Need("SLUICE_BIN", "SLUICE_ENVOY", "SLUICE_WASM_DIR"); err != nil {
		return "", err
	}
	dir := c.keep
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "sluice-chaos-")
	} else if dir, err = filepath.Abs(dir); err == nil {
		err = os.Mkdir(dir, 0o755) // a run begins with nothing
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return dir, err
}

// judge lets clients and faults loose on a fleet, waits for quiet, and audits.
func (c config) judge(ctx context.Context, f *fleet.Fleet, r *actors.Receiver) ([]audit.Line, error) {
	w, err := actors.New(f, r, c.seed)
	if err != nil {
		return nil, err
	}
	w.Slow, w.Drill = c.slow, c.drills > 0
	if err := w.Prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if c.drills > 0 {
		c.faults = slices.Repeat([]plan.Fault{{Kind: plan.FailOver, Target: "postgres"}}, c.drills)
	}
	faults := c.faults
	if faults == nil {
		targets := f.Targets()
		targets.Only = c.only
		if faults = plan.Make(c.seed, c.length, targets); len(faults) == 0 {
			return nil, errors.New("nothing goes wrong: the run is too short, or there is no such fault")
		}
	}
	fmt.Fprintf(c.out, "seed %d: %d faults in %v, wires: %s\n", c.seed, len(faults), c.length, strings.Join(f.Targets().Wires, ", "))
	if !c.disk {
		fmt.Fprintln(c.out, "not root: no disk is filled")
	}
	if f.Fixed != nil {
		fmt.Fprintln(c.out, "no clock jumps:", f.Fixed)
	}
	during, stop := context.WithTimeout(ctx, c.length)
	if c.drills > 0 {
		during, stop = context.WithCancel(ctx) // it takes as long as it takes to make standbys
	}
	defer stop()
	acted := make(chan error, 1)
	go func() { acted <- w.Run(during) }()
	began := time.Now()
	var failures error
	if c.drills > 0 {
		failures = c.drill(ctx, f, faults)
		c.length = time.Since(began).Round(time.Second)
		stop()
	} else {
		failures = c.storm(ctx, f, w, faults)
	}
	failures = errors.Join(failures, bypassed(f), <-acted)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	url, err := f.DatabaseURL()
	if err != nil {
		return nil, err
	}
	b := books{url}
	end, err := w.Rest(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.quiet(ctx, f, w, b); err != nil {
		failures = errors.Join(failures, fmt.Errorf("not everything came to rest: %w", err))
	}
	c.restarts(f)
	seen := w.Seen(end)
	if err := w.Look(ctx); err != nil {
		return nil, err
	}
	seen.Finals = w.Finals()
	fmt.Fprintf(c.out, "\nseed %d, %v, %d faults\n", c.seed, c.length, len(seen.Faults))
	if err := audit.PrintRun(c.out, seen); err != nil {
		return nil, err
	}
	stored, err := b.stored(ctx)
	if err != nil {
		return nil, err
	}
	verdict := audit.Audit(seen, stored)
	if c.drills > 0 {
		return append(verdict, audit.Drill(seen)...), errors.Join(failures, audit.PrintFailovers(c.out, audit.Failovers(seen)))
	}
	fmt.Fprintln(c.out, "a hostile tenant for", c.siege)
	siege, err := w.Siege(ctx, c.siege, b.lateness)
	if err != nil {
		return verdict, errors.Join(failures, fmt.Errorf("a hostile tenant: %w", err))
	}
	return append(verdict, audit.Fair(siege, c.slow)), failures
}

// storm breaks what is planned, when it is planned.
func (c config) storm(ctx context.Context, f *fleet.Fleet, w *actors.World, faults []plan.Fault) error {
	var group sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	began := time.Now()
	for _, fault := range faults {
		select {
		case <-time.After(time.Until(began.Add(fault.At))):
		case <-ctx.Done():
			return ctx.Err()
		}
		fmt.Fprintln(c.out, fault)
		group.Go(func() {
			if err := strike(ctx, f, w, fault); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, err)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// Pauses of a drill: clients go on for a while before each failover, with a standby in
// place, and after the last one for as long as that may show.
const beforeFailover, afterDrill = 8 * time.Second, 15 * time.Second

// drill breaks one thing after another, each when all is well again.
func (c config) drill(ctx context.Context, f *fleet.Fleet, faults []plan.Fault) error {
	began := time.Now()
	for _, fault := range faults {
		if !pause.For(ctx, beforeFailover) {
			return ctx.Err()
		}
		fault.At = time.Since(began)
		fmt.Fprintln(c.out, fault)
		if err := f.Break(ctx, fault); err != nil {
			return err
		}
	}
	pause.For(ctx, afterDrill)
	return ctx.Err()
}

// bypassed fails if parts have found each other over no wire: nothing that is broken
// would have broken that.
func bypassed(f *fleet.Fleet) error {
	found, err := f.Bypasses()
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("connections over no wire: %s", strings.Join(found, ", "))
	}
	return err
}

func strike(ctx context.Context, f *fleet.Fleet, w *actors.World, fault plan.Fault) error {
	if fault.Kind != plan.FlapConfig {
		return f.Break(ctx, fault)
	}
	began := time.Now()
	defer func() { f.Note(fault, began, time.Now()) }()
	for end := began.Add(fault.For); time.Now().Before(end) && ctx.Err() == nil; {
		w.Flap(ctx)
	}
	return nil
}

// quiet waits until nothing is under way any more: everything has been mended, and
// what waits for a retry is asked for at once, as a customer would.
func (c config) quiet(ctx context.Context, f *fleet.Fleet, w *actors.World, b books) error {
	calm := func() error {
		list, err := b.delayed(ctx)
		if err != nil {
			return err
		}
		for _, d := range list {
			w.Resend(ctx, d.Subscription, []string{webhooks.DeliveryID(d.ID)})
		}
		at, err := b.waiting(ctx)
		if err == nil && at != (waiting{}) {
			err = fmt.Errorf("%d webhooks, %d runs of schedules and %d payments wait", at.deliveries, at.runs, at.payments)
		}
		return errors.Join(err, w.Current(ctx))
	}
	if err := f.Await(ctx, calm); err != nil {
		return err
	}
	last, since := int64(-1), time.Now()
	return f.Await(ctx, func() error {
		n, err := b.usage(ctx)
		if err != nil || n != last {
			last, since = n, time.Now()
			return errors.Join(err, errors.New("requests are still being counted"))
		}
		if time.Since(since) < 4*time.Second {
			return errors.New("requests are still being counted")
		}
		return nil
	})
}

// restarts prints how often each process came back.
func (c config) restarts(f *fleet.Fleet) {
	var parts []string
	starts := f.Starts()
	for _, name := range f.Targets().Processes {
		if starts[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, starts[name]))
		}
	}
	fmt.Fprintln(c.out, "processes that were started again:", strings.Join(parts, ", "))
}
