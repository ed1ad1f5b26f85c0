package meter

// Use is the last known use of an API key.
type Use struct {
	Key     uint64 // number of the key
	At      int64  // unix seconds
	Address string // of the client, without its port
}

// Uses notes which keys are used, each at most once a minute and worker: people
// look for keys that nobody uses, and a minute is close enough.
type Uses struct {
	seen [1024]seen // by key; two keys of one place are noted more often
	list []Use
}

type seen struct {
	key    uint64
	minute uint32
}

// maxUses bounds the uses of one batch. One that does not fit is noted with the
// key's next request.
const maxUses = 1024

// Due reports whether a use of key at now, in unix seconds, is to be noted.
func (u *Uses) Due(key uint64, now int64) bool {
	s := &u.seen[key%uint64(len(u.seen))]
	return (s.key != key || s.minute != uint32(now/60)) && len(u.list) < maxUses
}

// Note keeps a use for the next batch.
func (u *Uses) Note(use Use) {
	u.seen[use.Key%uint64(len(u.seen))] = seen{use.Key, uint32(use.At / 60)}
	u.list = append(u.list, use)
}

// Reset forgets the uses that have gone into a batch.
func (u *Uses) Reset() { clear(u.list); u.list = u.list[:0] }
