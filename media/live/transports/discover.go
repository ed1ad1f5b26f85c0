package transports

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/platform/process/pause"
)

// catalogue gathers what is heard of sources between two steps. It holds maxSources of
// each transport: whoever floods the network with announcements fills it, and no more.
type catalogue struct {
	mu          sync.Mutex
	heard, gone shelf
	by          map[string]string // ids, by what an announcement of an end names
}

// shelf holds sources by their transport and id.
type shelf map[string]map[string]Source

// put keeps f, if there is room, or a newer word of one that is there.
func (s *shelf) put(f Source) {
	if *s == nil {
		*s = shelf{}
	}
	of := (*s)[f.Transport]
	if of == nil {
		of = map[string]Source{}
		(*s)[f.Transport] = of
	}
	if _, there := of[f.ID]; there || len(of) < maxSources {
		of[f.ID] = f
	}
}

// list is all that s holds.
func (s shelf) list() (all []Source) {
	for _, of := range s {
		for _, f := range of {
			all = append(all, f)
		}
	}
	return all
}

// add keeps a source.
func (c *catalogue) add(f Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.gone[f.Transport], f.ID)
	c.heard.put(f)
}

// drop keeps that a source is gone.
func (c *catalogue) drop(f Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.heard[f.Transport], f.ID)
	c.gone.put(f)
}

// alias keeps by which other name a source's end will be told.
func (c *catalogue) alias(name, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil || len(c.by) > 2*maxSources {
		c.by = map[string]string{}
	}
	c.by[name] = id
}

// find returns the id that alias was given.
func (c *catalogue) find(name string) (id string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok = c.by[name]
	return id, ok
}

// take returns what was gathered, and begins anew.
func (c *catalogue) take() (heard, gone []Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	heard, gone = c.heard.list(), c.gone.list()
	c.heard, c.gone = nil, nil
	return heard, gone
}

// sourceID is the stable name of a source: its transport and what tells it apart.
func sourceID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	letters := base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)
	return "src_" + letters.EncodeToString(sum[:])[:20]
}

// discover looks for sources of a transport until ctx ends.
func (s *Supervisor) discover(ctx context.Context, transport string) {
	look := s.announcements
	switch {
	case s.Settings.Engine(transport) == External:
		look = func(ctx context.Context) error { return s.ask(ctx, transport) }
	case transport != Dante:
		return // sources of OMT are named by their address
	}
	for wait := s.Again; ctx.Err() == nil; wait = min(2*wait, 30*s.Again) {
		err := look(ctx)
		if ctx.Err() == nil {
			s.Log.WarnContext(ctx, "sources are not looked for; trying again", "transport", transport, "cause", err)
			pause.For(ctx, wait)
		}
	}
}

// announcements listens to SAP.
func (s *Supervisor) announcements(ctx context.Context) error {
	return s.Settings.Network.Listen(ctx, func(a aes67.Announcement) {
		// A deletion names the announcement; its description may be missing.
		name := a.Origin.String() + " " + strconv.Itoa(int(a.Hash))
		if a.Gone {
			if id, ok := s.heard.find(name); ok {
				s.heard.drop(Source{Transport: Dante, ID: id})
			}
			return
		}
		f, err := aes67.ParseSDP(a.SDP)
		if err != nil || !s.Settings.Network.Allows(f.Address) {
			return
		}
		address := fmt.Sprintf("%s:%d", f.Address, f.Port)
		found := Source{Transport: Dante, ID: sourceID(Dante, a.Origin.String(), f.Name, address), Name: f.Name, Address: address, Spec: Spec{Flow: &f}, SeenAt: s.Now()}
		if found.Name == "" {
			found.Name = address
		}
		s.heard.alias(name, found.ID)
		s.heard.add(found)
	})
}

// ask has the operator's program look for sources.
func (s *Supervisor) ask(ctx context.Context, transport string) error {
	return s.execute(ctx, transport, []string{"SLUICE_BRIDGE_MODE=discover"}, func(l line) {
		if l.Gone != "" {
			s.heard.drop(Source{Transport: transport, ID: sourceID(transport, clean(l.Gone))})
		}
		if l.Source != nil && clean(l.Source.Name) != "" {
			name := clean(l.Source.Name)
			s.heard.add(Source{Transport: transport, ID: sourceID(transport, name), Name: name, Address: clean(l.Source.Address), SeenAt: s.Now()})
		}
	})
}

// flush stores what was heard since the last step.
func (s *Supervisor) flush(ctx context.Context) error {
	heard, gone := s.heard.take()
	if len(heard)+len(gone) == 0 && s.Now().Sub(s.swept) < repeat {
		return nil
	}
	s.swept = s.Now()
	return s.remember(ctx, heard, gone)
}
