package keytable

import "testing"

// counted is a store that counts look-ups.
type counted struct {
	memory
	reads int
}

func (c *counted) Bucket(n uint32) []byte {
	c.reads++
	return c.memory.Bucket(n)
}

func TestMemo(t *testing.T) {
	t.Parallel()
	a, b := Tag{1, 15: 7}, Tag{2, 15: 7} // of one slot
	store := &counted{memory: memory{}}
	put := func(tag Tag, id uint64) {
		store.SetBucket(tag.Bucket(), Record{Tag: tag, Kind: KindKey, ID: id}.Append(nil))
	}
	put(a, 1)
	put(b, 2)
	var m Memo
	for _, step := range []struct {
		name     string
		change   func()
		tag      Tag
		revision uint64
		now      int64
		id       uint64 // 0: not found
		reads    int    // of the store, so far
	}{
		{"first", nil, a, 0, 100, 1, 1},
		{"again", nil, a, 0, 100, 1, 1},
		{"another in its slot", nil, b, 0, 100, 2, 2},
		{"the first was pushed out", nil, a, 0, 100, 1, 3},
		{"changed, the revision not yet", func() { put(a, 3) }, a, 0, 100, 1, 3},
		{"and now", nil, a, 1, 100, 3, 4},
		{"a revision that fell", nil, a, 0, 100, 3, 5},
		{"the next second", nil, a, 0, 101, 3, 6},
		{"revoked", func() { store.SetBucket(a.Bucket(), nil) }, a, 1, 101, 0, 7},
		{"what is not there is looked up each time", nil, a, 1, 101, 0, 8},
	} {
		if step.change != nil {
			step.change()
		}
		r, ok := m.Find(store, step.tag, step.revision, step.now)
		if ok != (step.id != 0) || r.ID != step.id || store.reads != step.reads {
			t.Errorf("%s: %v %v after %d reads", step.name, r.ID, ok, store.reads)
		}
	}
}
