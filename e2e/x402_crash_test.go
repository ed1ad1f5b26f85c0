package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/e2e/harness"
)

// chainOf is a facilitator with a chain of its own: a nonce is settled once.
type chainOf struct {
	*httptest.Server
	mu      sync.Mutex
	settled map[string]bool // by nonce
	hold    string          // the path of which calls are held, after their effect
	held    chan string     // nonces of held calls
}

func newChain(t *testing.T) *chainOf {
	c := &chainOf{settled: map[string]bool{}, held: make(chan string, 8)}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *chainOf) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		PaymentPayload struct {
			Payload struct{ Authorization authorization }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a := body.PaymentPayload.Payload.Authorization
	c.mu.Lock()
	known, holds := c.settled[a.Nonce], c.hold == r.URL.Path
	if r.URL.Path == "/settle" {
		c.settled[a.Nonce] = true
	}
	c.mu.Unlock()
	if holds {
		c.held <- a.Nonce
		<-r.Context().Done()
		return
	}
	answer := map[string]any{"isValid": !known, "invalidReason": "invalid_exact_evm_payload_nonce_already_used", "payer": a.From}
	if r.URL.Path == "/settle" {
		answer = map[string]any{"success": !known, "payer": a.From, "transaction": "0x" + strings.Repeat("ab", 32), "network": "base-sepolia"}
		if known {
			answer["errorReason"] = "invalid_exact_evm_payload_nonce_already_used"
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// holding holds calls of a path from now on; "": none.
func (c *chainOf) holding(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = path
}

func (c *chainOf) has(nonce string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settled[nonce]
}

// shopBed is a stack of three edges that settles by a facilitator.
type shopBed struct {
	*stack
	t     *testing.T
	chain *chainOf
	edges []string // addresses of the gateways
	offer requirement
	db    *pgx.Conn
}

func newShop(t *testing.T) *shopBed {
	chain := newChain(t)
	env, gateways := edgesOf(t, 3)
	maps.Copy(env, map[string]string{"SLUICE_X402_SETTLEMENT": "facilitator", "SLUICE_X402_FACILITATOR_URL": chain.URL,
		"SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8"})
	s := own(t, env)
	db, err := pgx.Connect(t.Context(), s.dev["SLUICE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.WithoutCancel(t.Context())) })
	b := &shopBed{stack: s, t: t, chain: chain, edges: gateways, db: db}
	b.offer = s.offer(t)
	return b
}

// sale is a payment on its way through an edge.
type saleOf struct {
	nonce, header string
	answer        chan response // closed when the connection breaks
}

// sell sends a paid request to an edge.
func (b *shopBed) sell(edge int, changes ...func(*authorization)) saleOf {
	b.t.Helper()
	s := saleOf{answer: make(chan response, 1)}
	note := func(a *authorization) { s.nonce = a.Nonce }
	s.header = newWallet(b.t).payFor(b.t, b.offer, append(changes, note)...)
	b.send(edge, s)
	return s
}

func (b *shopBed) send(edge int, s saleOf) {
	go func() {
		defer close(s.answer)
		if r, err := try(http.MethodPost, "http://"+b.edges[edge]+"/v1/clips", "", clipOrder, "X-PAYMENT", s.header); err == nil {
			s.answer <- r
		}
	}()
}

// state waits until the payment has one of the states, and returns it.
func (b *shopBed) state(s saleOf, states ...string) {
	b.t.Helper()
	eventually(b.t, "payment is "+strings.Join(states, " or "), func() error {
		var got string
		err := b.db.QueryRow(b.t.Context(), `SELECT state FROM x402_payments WHERE nonce = $1`, s.nonce).Scan(&got)
		for _, want := range states {
			if got == want {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("it is %q", got))
	})
}

// hurry makes the jobs about payments due.
func (b *shopBed) hurry() {
	b.t.Helper()
	if _, err := b.db.Exec(b.t.Context(), `UPDATE river_job SET scheduled_at = now() - interval '1 second' WHERE kind = 'x402_resolve' AND state = 'scheduled'`); err != nil {
		b.t.Fatal(err)
	}
}

// signal sends a signal to one of the stack's processes.
func (b *shopBed) signal(pid int, sig syscall.Signal) {
	b.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		b.t.Fatal(err)
	}
}

// envoy is the process behind an edge.
func (b *shopBed) envoy(edge int) int {
	b.t.Helper()
	p, err := harness.Below(b.PID(), "Envoy of that edge", func(p harness.Proc) bool {
		return p.Args[0] == need(b.t, "SLUICE_ENVOY") && harness.Environment(p.Parent)["SLUICE_GATEWAY_ADDR"] == b.edges[edge]
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return p.PID
}

// back waits until an edge, and the hub behind it, answer again.
func (b *shopBed) back(edge int) {
	b.t.Helper()
	eventually(b.t, "an edge sells again", func() error {
		wrong := newWallet(b.t).payFor(b.t, b.offer, func(a *authorization) { a.Nonce = "0x" + strings.Repeat("00", 32) })
		r, err := try(http.MethodPost, "http://"+b.edges[edge]+"/v1/clips", "", clipOrder, "X-PAYMENT", wrong)
		if err == nil && r.StatusCode == http.StatusServiceUnavailable {
			err = errors.New(r.body)
		}
		return err
	})
}

// Processes die while a payment is on its way, and nobody is charged or served
// twice. One stack serves all of it, so the parts follow one another.
func TestPaymentsSurviveCrashes(t *testing.T) {
	t.Parallel()
	b := newShop(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *shopBed)
	}{
		{"copies on three edges", copiesOnThreeEdges},
		{"the product does not answer in time", productTooSlow},
		{"control plane dies while it verifies", diesVerifying},
		{"control plane dies while the product works", diesGranted},
		{"control plane dies while it settles", diesSettling},
	} {
		t.Run(part.name, func(t *testing.T) {
			b.t = t
			part.run(t, b)
		})
	}
}

// Two hundred copies of one payment on three edges are one grant.
func copiesOnThreeEdges(t *testing.T, b *shopBed) {
	s := saleOf{header: newWallet(t).payFor(t, b.offer)}
	grantOnce(t, 200, s.header, func(i int) string { return "http://" + b.edges[i%3] })
}

// A payment ends while its request is under way, and an edge dies in the middle
// of another one: neither is charged, and the late answer is withheld.
func productTooSlow(t *testing.T, b *shopBed) {
	product := b.child(t, "media")
	b.signal(product, syscall.SIGSTOP)
	end := time.Now().Add(8 * time.Second)
	short := func(a *authorization) { a.ValidBefore = strconv.FormatInt(end.Unix(), 10) }
	late, lost := b.sell(1, short), b.sell(0, short)
	b.state(late, "granted")
	b.state(lost, "granted")
	b.signal(b.envoy(0), syscall.SIGKILL)
	if r, ok := <-lost.answer; ok && r.StatusCode < 500 {
		t.Errorf("an edge that died answered %d", r.StatusCode)
	}
	eventually(t, "the payments' time is over", func() error {
		if now := time.Now(); now.Before(end) {
			return errors.New(now.String())
		}
		return nil
	})
	b.signal(product, syscall.SIGCONT)
	r := <-late.answer
	if r.Response == nil {
		t.Fatal("no answer")
	}
	wantStatus(t, r, http.StatusPaymentRequired)
	wantHeaders(t, r)
	if q := into[quoted](t, r); !strings.HasSuffix(q.Error, "valid_before") || receiptOf(t, r).Success {
		t.Errorf("%+v", q)
	}
	b.state(late, "failed")
	eventually(t, "the time of the lost one has passed", func() error {
		b.hurry()
		var got string
		err := b.db.QueryRow(t.Context(), `SELECT state FROM x402_payments WHERE nonce = $1`, lost.nonce).Scan(&got)
		if err == nil && got != "abandoned" {
			err = errors.New(got)
		}
		return err
	})
	if b.chain.has(late.nonce) || b.chain.has(lost.nonce) {
		t.Error("charged")
	}
	b.back(0)
}

// Nothing was taken: the same payment is good for the next try.
func diesVerifying(t *testing.T, b *shopBed) {
	b.chain.holding("/verify")
	s := b.sell(0)
	<-b.chain.held
	b.signal(b.child(t, "controlplane"), syscall.SIGKILL)
	if r := <-s.answer; r.Response != nil && r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	b.chain.holding("")
	b.back(1)
	again := saleOf{nonce: s.nonce, header: s.header, answer: make(chan response, 1)}
	b.send(1, again)
	wantStatus(t, <-again.answer, http.StatusCreated)
	b.state(again, "settled")
}

// The edge has the answer and nobody to settle with: it tells the next hub.
func diesGranted(t *testing.T, b *shopBed) {
	product := b.child(t, "media")
	b.signal(product, syscall.SIGSTOP)
	s := b.sell(2)
	b.state(s, "granted")
	b.signal(b.child(t, "controlplane"), syscall.SIGKILL)
	b.signal(product, syscall.SIGCONT)
	wantStatus(t, <-s.answer, http.StatusCreated)
	b.state(s, "settled")
	if !b.chain.has(s.nonce) {
		t.Error("not charged")
	}
	b.back(2)
}

// Money has moved and nobody was told: the payer is served, and a job finds out.
func diesSettling(t *testing.T, b *shopBed) {
	b.chain.holding("/settle")
	s := b.sell(0)
	<-b.chain.held
	b.signal(b.child(t, "controlplane"), syscall.SIGKILL)
	wantStatus(t, <-s.answer, http.StatusCreated)
	b.state(s, "settling")
	b.chain.holding("")
	b.hurry()
	b.state(s, "settled")
	b.back(0)
	again := saleOf{nonce: s.nonce, header: s.header, answer: make(chan response, 1)}
	b.send(0, again)
	wantStatus(t, <-again.answer, http.StatusPaymentRequired)
}
