// Package fleet runs the whole platform as separate processes with a proxy on
// every connection between them, and breaks what it is told to break: two control
// planes, two workers, three edges, the chat runtime, the media product and
// PostgreSQL. A process that dies is started again.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/e2e/harness"
)

// Config says what is run.
type Config struct {
	Dir      string // for data and logs; made by the caller
	Receiver string // address of the receiver of webhooks
	TLS      bool   // edges and the control plane show each other certificates, and edges show clients one
	Disk     bool   // one edge has a disk of its own that can be filled; needs root
	Standby  bool   // PostgreSQL has a synchronous standby
}

// Edge is one edge as clients see it.
type Edge struct {
	Name, Gateway, Runtime string // name and base URLs
}

// Fleet is a platform that runs.
type Fleet struct {
	Config
	Edges []Edge
	// Hooks is the base URL under which the platform calls the receiver.
	Hooks string
	// Admins are the base URLs of the admin API.
	Admins []string
	// Dev is what `sluice seed` wrote: keys and tokens of the first account.
	Dev map[string]string

	// Fixed says why clocks cannot be moved; nil: they can.
	Fixed error

	gateway   string            // "http://" or "https://"
	shared    map[string]string // settings of every process
	addrs     map[string]string // by name of what listens
	database  *database
	processes map[string]*process
	order     []string // names of processes as they were started
	wires     *wires

	still sync.Mutex // held while a process is stopped or continued

	mu      sync.Mutex
	outages []audit.Outage
	skews   []audit.Skew
	struck  []audit.Struck
	kills   map[string][]audit.Span // by name of the process
}

// counts of the parts.
const controlPlanes, workers, edges = 2, 2, 3

// listens names everything that has an address of its own.
func listens() []string {
	names := []string{"runtime", "media", "postgres", "standby"}
	add := func(n int, kinds ...string) {
		for i := range n {
			for _, k := range kinds {
				names = append(names, fmt.Sprintf("%s-%d", k, i+1))
			}
		}
	}
	add(controlPlanes, "admin", "xds", "api")
	add(workers, "worker")
	add(edges, "gateway", "chat", "envoy", "agent")
	add(64, "wire")
	return names
}

// Start starts everything and returns when every edge serves.
func Start(ctx context.Context, c Config) (*Fleet, error) {
	f := &Fleet{Config: c, addrs: map[string]string{}, processes: map[string]*process{}, wires: newWires(), kills: map[string][]audit.Span{}}
	names := listens()
	addrs, err := freeport.Addrs(len(names))
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		f.addrs[name] = addrs[i]
	}
	if err := f.up(ctx); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return f, nil
}

func (f *Fleet) up(ctx context.Context) error {
	if err := f.startDatabase(ctx); err != nil {
		return err
	}
	if err := f.settle(); err != nil {
		return err
	}
	if f.TLS {
		if err := f.Certificates(); err != nil {
			return err
		}
	}
	if f.Disk {
		if err := f.makeDisk(); err != nil {
			return err
		}
	}
	if err := f.seed(); err != nil {
		return err
	}
	f.configure()
	for _, p := range f.parts() {
		if err := f.launch(p); err != nil {
			return err
		}
	}
	return f.await(ctx)
}

func (f *Fleet) startDatabase(ctx context.Context) error {
	log, err := f.logFile("postgres")
	if err != nil {
		return err
	}
	f.database = &database{log: log}
	for _, name := range []string{"postgres", "standby"} {
		_, port, _ := strings.Cut(f.addrs[name], ":")
		n, err := strconv.Atoi(port)
		if err != nil {
			return err
		}
		if name == "postgres" || f.Standby {
			f.database.both = append(f.database.both, &member{dir: filepath.Join(f.Dir, name), port: n})
		}
	}
	if err := f.database.start(ctx); err != nil {
		return err
	}
	f.Fixed = f.clocked()
	return nil
}

func (f *Fleet) logFile(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(f.Dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// wire lays a wire and returns its address.
func (f *Fleet) wire(from, to, addr string) (string, error) {
	listen := f.addrs["wire-"+strconv.Itoa(len(f.wires.names)+1)]
	return f.wires.lay(from+">"+to, listen, addr)
}

// environ is the fleet's settings, and extra.
func (f *Fleet) environ(extra map[string]string) map[string]string {
	set := maps.Clone(f.shared)
	maps.Copy(set, extra)
	return set
}

// seed makes the schema, the first configuration and the first account.
func (f *Fleet) seed() error {
	url, err := f.database.through()
	if err != nil {
		return err
	}
	dir := filepath.Join(f.Dir, "seed")
	env := f.environ(map[string]string{"SLUICE_DATABASE_URL": url, "SLUICE_STATE_DIR": dir, "SLUICE_ADMIN_ADDR": f.addrs["admin-1"]})
	if err := harness.Run(env, "seed"); err != nil {
		return err
	}
	f.Dev, err = harness.ReadEnv(filepath.Join(dir, "dev.env"))
	return err
}

// launch starts a process for the first time.
func (f *Fleet) launch(p *process) error {
	log, err := f.logFile(p.name)
	if err != nil {
		return err
	}
	p.log = log
	f.processes[p.name], f.order = p, append(f.order, p.name)
	return p.start()
}

// DatabaseURL leads to the database over no wire.
func (f *Fleet) DatabaseURL() (string, error) { return f.database.through() }

// Stop ends everything: edges first, then what is behind them, then what they all
// report to. An error says what did not end in order.
func (f *Fleet) Stop() error {
	var errs []error
	for _, group := range []string{"edge", "worker runtime media", "controlplane"} {
		errs = append(errs, f.stop(group))
	}
	f.wires.close()
	if f.database != nil {
		errs = append(errs, f.database.stop())
	}
	return errors.Join(append(errs, f.freeDisk())...)
}

// stop ends the processes of some kinds, all at once: each takes its time.
func (f *Fleet) stop(kinds string) error {
	errs := make([]error, len(f.order))
	var group sync.WaitGroup
	for i, name := range f.order {
		kind, _, _ := strings.Cut(name, "-")
		if slices.Contains(strings.Fields(kinds), kind) {
			group.Go(func() { errs[i] = f.processes[name].stop() })
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

// Starts says how often a process was started beyond the first time.
func (f *Fleet) Starts() map[string]int {
	all := map[string]int{}
	for name, p := range f.processes {
		p.mu.Lock()
		all[name] = max(0, cmp.Or(p.starts, 1)-1)
		p.mu.Unlock()
	}
	return all
}
