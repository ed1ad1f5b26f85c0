package descriptions

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Described is the description of one product.
type Described struct {
	Product  string
	Revision int64  // another one for each change of any description
	Text     []byte // OpenAPI 3.1 as JSON; it must not be altered
}

// Current keeps all descriptions at hand. It is at most Every behind, and goes on
// with the last ones while the database is away. What it holds is MaxTotal at most.
type Current struct {
	Store Store
	Every time.Duration    // 0: 1 s
	Now   func() time.Time // nil: time.Now

	mu     sync.Mutex
	last   map[string]Described
	list   []Described
	number int64 // of the list, which grows when it changes
	looked time.Time
}

// Get returns all descriptions, by product, and a number that is another one when
// they have changed. Before the first have been read it fails if the database is away.
func (c *Current) Get(ctx context.Context) (list []Described, number int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, every := time.Now(), c.Every
	if c.Now != nil {
		now = c.Now()
	}
	if every == 0 {
		every = time.Second
	}
	if c.last != nil && now.Sub(c.looked) < every {
		return c.list, c.number, nil
	}
	if err := c.read(ctx); err != nil && c.last == nil {
		return nil, 0, err
	}
	c.looked = now
	return c.list, c.number, nil
}

// read reads the descriptions that have changed.
func (c *Current) read(ctx context.Context) error {
	revisions, err := c.Store.revisions(ctx)
	if err != nil {
		return err
	}
	had := map[string]int64{}
	for product, d := range c.last {
		had[product] = d.Revision
	}
	if c.last != nil && maps.Equal(had, revisions) {
		return nil
	}
	all := make(map[string]Described, len(revisions))
	var list []Described
	for _, product := range sortedNames(revisions) {
		d, ok := c.last[product]
		if !ok || d.Revision != revisions[product] {
			text, err := c.Store.Get(ctx, product)
			if err != nil {
				return err
			}
			d = Described{product, revisions[product], text}
		}
		all[product], list = d, append(list, d)
	}
	c.last, c.list, c.number = all, list, c.number+1
	return nil
}
