package relay

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// The ways in which an edge limits.
const (
	Shared = "shared" // by what all edges have counted
	Share  = "share"  // cut off from the others: by its own count and a fair share
	Alone  = "alone"  // by its own count: it has never heard of others
)

// rateSync passes the exchange of counts on and keeps its result. It keeps the
// number of edges on disk: an Envoy that starts while no replica answers would
// take itself for the only one.
type rateSync struct {
	cfg  Config
	file string

	mu    sync.Mutex
	edges uint32    // at the last answer; 0: none ever came
	heard time.Time // when that was; zero: not since the agent started
	last  []byte    // Envoy's last report
	ended bool      // Envoy has ended
}

// newRateSync reads the number of edges that was saved.
func newRateSync(c Config) *rateSync {
	x := &rateSync{cfg: c, file: filepath.Join(c.Dir, "fleet.state")}
	raw, err := readSealed(x.file)
	switch {
	case err != nil || (raw != nil && len(raw) != 4):
		c.Log.Error("the saved number of edges is not used", "file", x.file, "cause", err)
	case raw != nil:
		x.edges = binary.LittleEndian.Uint32(raw)
	}
	return x
}

// handler passes exchanges on to a replica. While none answers it tells Envoy how
// many edges there were.
func (x *rateSync) handler(u *upstreams) http.Handler {
	p := u.proxy()
	p.ModifyResponse = x.readAnswer
	unanswered := p.ErrorHandler
	p.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		unanswered(edgeCountWriter{w, x}, r, err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, sharedlimit.MaxBytes))
		if err != nil {
			http.Error(w, "the report is too large, or was cut off", http.StatusBadRequest)
			return
		}
		x.mu.Lock()
		x.last = body
		x.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.ServeHTTP(w, r)
	})
}

// holders says of how many edges' parts of a strict limit this one has its part.
func (x *rateSync) holders() uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	last, _ := sharedlimit.ParseReport(x.last)
	return last.Holders
}

// leaveTimeout is how long leave may take.
const leaveTimeout = 2 * time.Second

// leave tells a replica that the edge has ended, and what it had counted: so nobody holds
// back for it what it may use of strict limits. If no replica hears it, they wait until
// its lease has ended.
func (x *rateSync) leave(u *upstreams) {
	x.mu.Lock()
	last, ok := sharedlimit.ParseReport(x.last)
	ok = ok && x.ended
	x.mu.Unlock()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	last.Boot, last.Told = 0, max(last.Told+1, uint64(x.cfg.Now().UnixMilli()))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://replica"+edgeapi.CountsPath, bytes.NewReader(last.Append(nil)))
	if err != nil {
		return // the address is a constant
	}
	r.Header.Set(edgeapi.EdgeHeader, x.cfg.Edge)
	res, err := u.http.Do(r)
	if err != nil {
		x.cfg.Log.Warn("no replica knows that this edge has ended", "cause", err)
		return
	}
	_ = res.Body.Close()
}

// edgeCountWriter puts the number of edges behind the headers of an error.
type edgeCountWriter struct {
	http.ResponseWriter
	sync *rateSync
}

// WriteHeader writes the body too.
func (u edgeCountWriter) WriteHeader(status int) {
	u.sync.mu.Lock()
	body := sharedlimit.Answer{Edges: u.sync.edges}.Append(nil)
	u.sync.mu.Unlock()
	u.Header().Set("Content-Type", "application/octet-stream")
	u.ResponseWriter.WriteHeader(status)
	_, _ = u.Write(body) // an Envoy that has gone away asks again
}

// readAnswer reads an answer on its way to Envoy.
func (x *rateSync) readAnswer(res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, sharedlimit.MaxBytes+1))
	if err != nil {
		return fmt.Errorf("read the others' counts: %w", err)
	}
	_ = res.Body.Close()
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Set("Content-Length", strconv.Itoa(len(body)))
	if a, ok := sharedlimit.ParseAnswer(body); ok {
		x.recordAnswer(a.Edges)
	}
	return nil
}

func (x *rateSync) recordAnswer(edges uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.heard = x.cfg.Now()
	if edges == x.edges {
		return
	}
	x.edges = edges
	if err := writeSealed(x.file, binary.LittleEndian.AppendUint32(nil, edges)); err != nil {
		x.cfg.Log.Error("the number of edges could not be saved", "file", x.file, "cause", err)
	}
}

// status says how the edge limits, among how many, and for how long it has heard
// nothing of the others; -1: it never has since the agent started.
func (x *rateSync) status() (how string, edges uint32, age float64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, age := x.cfg.Now(), -1.0
	state := sharedlimit.State{Edges: x.edges}
	if !x.heard.IsZero() {
		state.Heard, age = x.heard.UnixMilli(), max(0, at.Sub(x.heard).Seconds())
	}
	switch {
	case x.edges <= 1:
		return Alone, x.edges, age
	case state.Fleet(at.UnixMilli()).Cut:
		return Share, x.edges, age
	}
	return Shared, x.edges, age
}
