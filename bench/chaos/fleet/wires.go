package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// wires are the connections between parts, each through a proxy that can harm it.
type wires struct {
	server *toxiproxy.ApiServer
	all    map[string]*toxiproxy.Proxy // by from>to
	names  []string                    // in the order in which they were laid
}

func newWires() *wires {
	return &wires{server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), all: map[string]*toxiproxy.Proxy{}}
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
	for _, stream := range []string{"upstream", "downstream"} {
		text, err := json.Marshal(toxic{stream, kind, stream, 1, attributes})
		if err != nil {
			return nil, err
		}
		if _, err := p.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
			return nil, fmt.Errorf("%s on %s: %w", kind, name, err)
		}
	}
	return func() error {
		p.Toxics.ResetToxics(context.Background())
		return nil
	}, nil
}

// cut closes a wire with all its connections until the returned function is called.
func (w *wires) cut(name string) (mend func() error, err error) {
	p := w.all[name]
	if p == nil {
		return nil, fmt.Errorf("there is no wire %s", name)
	}
	p.Stop()
	return p.Start, nil
}

func (w *wires) close() {
	for _, p := range w.all {
		p.Stop()
	}
}
