package main

import (
	"strings"
	"sync"
)

// lockedBuffer collects what a process writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tail is the last of what was written.
func (l *lockedBuffer) tail() string {
	s := l.String()
	return s[max(0, len(s)-500):]
}
