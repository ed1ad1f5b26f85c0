package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// maxLogFile is where NAME.log becomes NAME.log.1, and an older one is lost.
const maxLogFile = 8 << 20

// partLog takes what a part writes to the terminal and to its file.
type partLog struct {
	name     string
	terminal *terminal
	path     string // empty: no file

	mu    sync.Mutex
	lines lineBuffer
	file  *os.File
	size  int64
}

func openPartLog(dir, name string, t *terminal) (*partLog, error) {
	l := &partLog{name: name, terminal: t}
	if dir == "" {
		return l, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l.path = filepath.Join(dir, name+".log")
	return l, l.open()
}

// open opens the file for appending.
func (l *partLog) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write never fails: a full disk must not stop a part.
func (l *partLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines.write(p, l.emit)
	return len(p), nil
}

// say writes a line of the supervisor's own about the part.
func (l *partLog) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emit(fmt.Appendf(nil, l.name+" "+format, args...))
}

func (l *partLog) emit(line []byte) {
	l.terminal.line(l.name, line)
	if l.file == nil {
		return
	}
	n, _ := l.file.Write(append(line[:len(line):len(line)], '\n'))
	if l.size += int64(n); l.size >= maxLogFile {
		l.rotate()
	}
}

// rotate keeps one older file. If that fails, the part goes on without a file.
func (l *partLog) rotate() {
	_ = l.file.Close()
	l.file = nil
	if os.Rename(l.path, l.path+".1") == nil {
		_ = l.open()
	}
}

// Close writes out an unfinished line and closes the file.
func (l *partLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines.flush(l.emit)
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
