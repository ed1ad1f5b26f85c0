package tokens

// Meter counts a completion as it is produced, up to a limit. It tokenizes only
// when the limit might have been reached: a token covers at least one byte, so
// before that the bytes are bound enough. It holds no more than a few KB.
type Meter struct {
	Limit   int // tokens; 0 or less: none
	counted int
	pending []byte // not tokenized yet
}

// maxPending bounds what a meter holds.
const maxPending = 4 << 10

// Add counts text and returns how many bytes of it lie within the limit:
// len(text) unless the limit is passed in it. After that nothing fits.
func (m *Meter) Add(text string) (fits int) {
	before := len(m.pending)
	m.pending = append(m.pending, text...)
	unlimited := m.Limit <= 0
	if len(m.pending) < maxPending && (unlimited || m.counted+len(m.pending) <= m.Limit) {
		return len(text)
	}
	all := string(m.pending)
	n := Count(all)
	if unlimited || m.counted+n <= m.Limit {
		m.counted += n
		m.pending = m.pending[:0]
		return len(text)
	}
	fits = max(0, Prefix(all, m.Limit-m.counted)-before)
	m.counted = m.Limit
	m.pending = nil
	return min(fits, len(text))
}

// More counts tokens that are no text, and reports whether the limit holds.
func (m *Meter) More(n int) bool {
	if n <= 0 {
		return true
	}
	if m.Limit > 0 && m.Total()+n > m.Limit {
		m.counted, m.pending = m.Limit, nil
		return false
	}
	m.counted += n
	return true
}

// Total returns the tokens counted so far.
func (m *Meter) Total() int { return m.counted + Count(string(m.pending)) }
