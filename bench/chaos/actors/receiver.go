package actors

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
)

// secret signs the webhooks of the run.
const secret = "a secret of the run under fire"

// unwell is the part of requests that the receiver answers with 503, after it
// has noted them.
const unwell = 0.05

// Receiver takes webhooks at /hooks, calls of schedules at /calls, and is the service
// that needs no database.
type Receiver struct {
	server *httptest.Server

	mu    sync.Mutex
	rand  *rand.Rand
	hooks []audit.Hook
	calls []audit.Call
}

// NewReceiver listens.
func NewReceiver(seed uint64) *Receiver {
	r := &Receiver{rand: rand.New(rand.NewPCG(seed, 3))}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks", r.hook)
	mux.HandleFunc("POST /calls", r.call)
	mux.HandleFunc("GET "+steadily, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	r.server = httptest.NewServer(mux)
	return r
}

// Addr is where it listens.
func (r *Receiver) Addr() string { return r.server.Listener.Addr().(*net.TCPAddr).String() }

// Close ends it.
func (r *Receiver) Close() { r.server.Close() }

func (r *Receiver) hook(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // it has not arrived
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	signed := hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(req.Header.Get("X-Service-Signature")))
	r.answer(w, func() {
		r.hooks = append(r.hooks, audit.Hook{Event: req.Header.Get("X-Service-Event-Id"), Body: sha256.Sum256(body), Signed: signed})
	})
}

func (r *Receiver) call(w http.ResponseWriter, req *http.Request) {
	if _, err := io.ReadAll(req.Body); err != nil {
		return
	}
	r.answer(w, func() {
		r.calls = append(r.calls, audit.Call{Execution: req.Header.Get("X-Service-Execution-Id"), At: time.Now()})
	})
}

func (r *Receiver) answer(w http.ResponseWriter, note func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	note()
	if r.rand.Float64() < unwell {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
