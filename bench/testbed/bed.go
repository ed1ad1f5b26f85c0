// Package testbed is what benches of proxies have in common: an upstream, a plainly
// configured Envoy, a whole local stack whose edge proxies to the same upstream,
// and the CPU time that each takes.
//
// What is under test has one worker on core 0; the upstream (an Envoy that answers
// by itself) and the bench, which makes the load, are on core 1.
package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/bench/load"
	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/e2e/harness"
)

// Bed is everything that runs during a measurement.
type Bed struct {
	*harness.Stack
	Plain    *Subject // an Envoy with one route and nothing else
	Edge     *Subject // the stack's
	Upstream string   // its address
	started  []*harness.Process
}

// Path is what is asked for, at the edge and at all others.
const Path = "/v1/bench"

// Start brings up the upstream, the plain Envoy and the stack; Close must follow.
func Start() (*Bed, error) {
	stack, err := harness.NewStack(map[string]string{"SLUICE_EDGE_CONCURRENCY": "1"})
	if err != nil {
		return nil, err
	}
	b := &Bed{Stack: stack}
	if err := b.up(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Bed) up() error {
	addrs, err := freeport.Addrs(2)
	if err != nil {
		return err
	}
	b.Upstream = addrs[0]
	up, err := b.Envoy("upstream", upstreamConfig(b.Upstream))
	if err != nil {
		return err
	}
	pid, err := b.Envoy("plain", PlainConfig(addrs[1], b.Upstream))
	if err != nil {
		return err
	}
	b.Plain = &Subject{Name: "plain Envoy", PID: pid, Request: load.Request{Addr: addrs[1], Path: Path}}
	if err := b.stack(); err != nil {
		return err
	}
	return errors.Join(b.Plain.Ready(), b.Edge.Ready(), pin(up, 1), pin(os.Getpid(), 1))
}

// stack runs `sluice up` and routes Path to the upstream.
func (b *Bed) stack() error {
	if err := b.Up(); err != nil {
		return err
	}
	if err := b.route(); err != nil {
		return err
	}
	envoy, err := harness.Below(b.PID(), "envoy", func(p harness.Proc) bool { return strings.HasPrefix(p.Name, "envoy") })
	if err != nil {
		return err
	}
	b.Edge = &Subject{Name: "edge", PID: envoy.PID, Request: b.Keyed(b.Env["SLUICE_GATEWAY_ADDR"], b.Dev["SLUICE_API_KEY"])}
	return nil
}

// Keyed is a request to addr with an API key.
func (b *Bed) Keyed(addr, key string) load.Request {
	return load.Request{Addr: addr, Path: Path, Keys: []string{key}}
}

// route adds the bench's product and route to the stack's configuration, and takes
// the limit of the development key away.
func (b *Bed) route() error {
	doc, err := os.ReadFile("deploy/sluice.yaml")
	if err != nil {
		return errors.Join(err, errors.New("run it from the top of the checkout"))
	}
	text := strings.Replace(string(doc), "\nproducts:\n", "\nproducts:\n  - {name: bench, upstreams: [{address: \""+b.Upstream+"\"}]}\n", 1)
	text = strings.Replace(text, "\nroutes:\n", "\nroutes:\n  - {name: bench, methods: [GET], path: "+Path+", auth: [key], scope: streams:read, product: bench}\n", 1)
	text = strings.Replace(text, "per_minute: 1000000", "per_minute: 1000000000", 1)
	file := filepath.Join(b.Dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return b.Run(b.Dev, "apply", "-f", file)
}

// Close ends all that Start and Launch have started.
func (b *Bed) Close() {
	for _, p := range b.started {
		_ = p.Stop()
	}
	b.Stack.Close()
}
