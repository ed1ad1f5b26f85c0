package omt

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// dialTimeout bounds how long a source may take to answer, and quiet how long it may
// send nothing.
const (
	dialTimeout = 5 * time.Second
	quiet       = 10 * time.Second
)

// Receive hands the sound of the source at address (host:port) to write until ctx ends
// or the source closes the connection. What write is given is valid during the call.
func Receive(ctx context.Context, address string, write func(Sound) error) error {
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	if _, err := c.Write(metadata(subscribe)); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	in := reader{r: c}
	var s Sound
	for {
		if err := c.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return err
		}
		f, err := in.next()
		if err == nil && f.kind == kindAudio {
			if err = sound(&s, f.data); err == nil {
				err = write(s)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
	}
}

// maxReceivers bounds who is connected to a Server.
const maxReceivers = 16

// waiting is how many frames may wait for a receiver: what it does not take in time is
// not sent to it.
const waiting = 50

// Server sends sound to whoever connects and subscribes to it.
type Server struct {
	mu        sync.Mutex
	receivers map[net.Conn]chan []byte // nil channel: not subscribed
	began     time.Time
}

// Serve takes receivers from l, which it closes, until ctx ends or l fails.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer l.Close()
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which lets the receivers go
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("accept receivers: %w", err)
		}
		s.mu.Lock()
		if s.receivers == nil {
			s.receivers = map[net.Conn]chan []byte{}
		}
		full := len(s.receivers) >= maxReceivers
		if !full {
			s.receivers[c] = nil
		}
		s.mu.Unlock()
		if full {
			_ = c.Close()
			continue
		}
		all.Go(func() { s.attend(ctx, c) })
	}
}

// attend reads what a receiver asks for, and lets it go when it leaves.
func (s *Server) attend(ctx context.Context, c net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	var sending sync.WaitGroup
	defer sending.Wait()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if out := s.receivers[c]; out != nil {
			close(out)
		}
		delete(s.receivers, c)
		_ = c.Close()
	}()
	in := reader{r: c}
	for {
		f, err := in.next()
		if err != nil {
			return
		}
		text := string(bytes.TrimRight(f.data, "\x00"))
		s.mu.Lock()
		if f.kind == kindMetadata && strings.TrimSpace(text) == subscribe && s.receivers[c] == nil {
			out := make(chan []byte, waiting)
			s.receivers[c] = out
			sending.Go(func() { send(c, out) })
		}
		s.mu.Unlock()
	}
}

// send writes frames to a receiver until there are no more, or it does not take them.
func send(c net.Conn, frames <-chan []byte) {
	_, err := c.Write(metadata(`<OMTInfo ProductName="Sluice" Manufacturer="Sluice" Version="1.0" />`))
	for b := range frames {
		if err == nil {
			_ = c.SetWriteDeadline(time.Now().Add(quiet))
			_, err = c.Write(b)
		}
		if err != nil {
			_ = c.Close() // which ends attend, and so this
		}
	}
}

// Send sends interleaved frames to all that have subscribed. One that does not keep up
// misses some.
func (s *Server) Send(rate, channels int, frames []float32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	var b []byte
	for _, out := range s.receivers {
		if out == nil {
			continue
		}
		if b == nil {
			b = audio(int64(time.Since(s.began)/100), rate, channels, frames)
		}
		select {
		case out <- b:
		default:
		}
	}
}
