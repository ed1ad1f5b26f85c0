package sandbox

// Tail keeps the last that is written to it, such as a program's complaints for the log.
type Tail struct {
	Most int // bytes that it keeps
	text []byte
}

// Write keeps p, and forgets what came long before. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - t.Most; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String is what it keeps.
func (t *Tail) String() string { return string(t.text) }
