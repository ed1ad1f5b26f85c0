package relay

import (
	"slices"
	"strconv"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// resources are those of one type, by name.
type resources map[string]*discovery.Resource

// local answers one stream of Envoy from a state that does not change.
type local struct {
	state map[string]resources // by type
	asked map[string]bool      // types that Envoy has asked for
	nonce int
}

func newLocal(state map[string]resources) *local {
	return &local{state: state, asked: map[string]bool{}}
}

// answer returns what to send for q; nil: nothing. Envoy is told of what it
// lacks or holds in another version, and of names that there are none of.
func (l *local) answer(q *discovery.DeltaDiscoveryRequest) *discovery.DeltaDiscoveryResponse {
	typ, names := q.GetTypeUrl(), q.GetResourceNamesSubscribe()
	first := !l.asked[typ]
	l.asked[typ] = true
	all := slices.Contains(names, "*") || first && len(names) == 0
	if !all && len(names) == 0 {
		return nil // an acceptance, or names that it no longer wants
	}
	l.nonce++
	a := &discovery.DeltaDiscoveryResponse{TypeUrl: typ, Nonce: strconv.Itoa(l.nonce), SystemVersionInfo: "saved"}
	have, held := l.state[typ], q.GetInitialResourceVersions()
	add := func(name string) {
		r := have[name]
		switch {
		case r == nil:
			a.RemovedResources = append(a.RemovedResources, name)
		case held[name] != r.GetVersion():
			a.Resources = append(a.Resources, r)
		}
	}
	if all {
		names = nil
		for name := range have {
			names = append(names, name)
		}
		for name := range held {
			if have[name] == nil {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if name != "*" {
			add(name)
		}
	}
	if len(a.GetResources())+len(a.GetRemovedResources()) == 0 && len(held) > 0 {
		return nil // it holds all of it
	}
	return a
}
