package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// wires are the connections between parts, each through a proxy that can harm it.
type wires struct {
	server *toxiproxy.ApiServer
	all    map[string]*toxiproxy.Proxy // by from>to
	names  []string                    // in the order in which they were laid
	number atomic.Int64                // of toxics

	mu   sync.Mutex
	cuts map[string]int // how often a wire is cut now
}

func newWires() *wires {
	zerolog.SetGlobalLevel(zerolog.Disabled) // some toxics log past the logger that they are given
	return &wires{server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), all: map[string]*toxiproxy.Proxy{}, cuts: map[string]int{}}
}

// lay makes a wire from a part to another at addr; it returns the address that
// the first one is to call. listen is a free address.
func (w *wires) lay(name, listen, addr string) (string, error) {
	p := toxiproxy.NewProxy(w.server, name, listen, addr)
	if err := p.Start(); err != nil {
		return "", fmt.Errorf("wire %s: %w", name, err)
	}
	w.all[name], w.names = p, append(w.names, name)
	return p.Listen, nil
}

// toxic is one harm to one direction of a wire.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Toxicity   float32        `json:"toxicity"`
	Attributes map[string]any `json:"attributes"`
}

// poison harms both directions of a wire until the returned function is called.
func (w *wires) poison(name, kind string, attributes map[string]any) (heal func() error, err error) {
	p := w.all[name]
	if p == nil {
		return nil, fmt.Errorf("there is no wire %s", name)
	}
	var names []string
	heal = func() (err error) {
		for _, n := range names {
			err = errors.Join(err, p.Toxics.RemoveToxic(context.Background(), n))
		}
		return err
	}
	for _, stream := range []string{"upstream", "downstream"} {
		t := toxic{fmt.Sprintf("%s %d", stream, w.number.Add(1)), kind, stream, 1, attributes}
		text, err := json.Marshal(t)
		if err == nil {
			_, err = p.Toxics.AddToxicJson(strings.NewReader(string(text)))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s on %s: %w", kind, name, err), heal())
		}
		names = append(names, t.Name)
	}
	return heal, nil
}

// cut closes a wire with all its connections until the returned function is
// called; it may be cut several times over.
func (w *wires) cut(name string) (mend func() error, err error) {
	p := w.all[name]
	if p == nil {
		return nil, fmt.Errorf("there is no wire %s", name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cuts[name]++
	p.Stop()
	return func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.cuts[name]--; w.cuts[name] > 0 {
			return nil
		}
		return p.Start()
	}, nil
}

func (w *wires) close() {
	for _, p := range w.all {
		p.Stop()
	}
}
