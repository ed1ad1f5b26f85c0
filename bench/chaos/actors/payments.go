package actors

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"sync"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/workers/payments/evm"
)

// till is what is for sale, as the platform quotes it.
type till struct {
	domain evm.Domain
	to     evm.Address
	price  int64
}

// funds of a payer, in the token's smallest units, and how long a payment is good.
const (
	funds    = 1_000_000
	goodFor  = 40 * time.Second
	copies   = 0.2 // the part of payments that go to all edges at once
	payTries = 5
)

// quote asks what a clip costs.
func (w *World) quote(ctx context.Context) error {
	var q struct {
		Accepts []struct {
			Price   string `json:"maxAmountRequired"`
			PayTo   string `json:"payTo"`
			Asset   string `json:"asset"`
			Network string `json:"network"`
			Extra   struct{ Name, Version string }
		}
	}
	a := w.ask(ctx, w.clip(w.Fleet.Edges[0].Gateway, ""))
	if err := a.into(&q); err != nil || len(q.Accepts) != 1 || q.Accepts[0].Network != "base-sepolia" {
		return fmt.Errorf("a quote is answered %d: %s", a.status, a.body)
	}
	offer := q.Accepts[0]
	token, err := evm.ParseAddress(offer.Asset)
	if err != nil {
		return err
	}
	if w.pay.to, err = evm.ParseAddress(offer.PayTo); err != nil {
		return err
	}
	w.pay.domain = evm.Domain{Name: offer.Extra.Name, Version: offer.Extra.Version, Chain: 84532, Token: token}
	w.pay.price, err = strconv.ParseInt(offer.Price, 10, 64)
	return err
}

// clip is the request that is paid for.
func (w *World) clip(gateway, payment string) request {
	return request{method: http.MethodPost, url: gateway + "/v1/clips", payment: payment,
		body: map[string]any{"source_url": "https://example.com/film.mp4", "start": 1, "duration": 2}}
}

// sign makes a payment by payer.
func (t till) sign(payer evm.Key, now time.Time) string {
	p := evm.Transfer{From: payer.Address(), To: t.to, Value: big.NewInt(t.price), ValidAfter: new(big.Int), ValidBefore: big.NewInt(now.Add(goodFor).Unix())}
	rand.Read(p.Nonce[:])
	signature := payer.Sign(p.Digest(t.domain))
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"x402Version":1,"scheme":"exact","network":"base-sepolia","payload":{"signature":"0x%x","authorization":`+
		`{"from":%q,"to":%q,"value":"%d","validAfter":"0","validBefore":"%v","nonce":"0x%x"}}}`, signature[:], p.From, p.To, t.price, p.ValidBefore, p.Nonce[:]))
}

// buy funds a new payer and has it pay once, perhaps with copies at every edge.
func (w *World) buy(ctx context.Context) {
	var seed [32]byte
	rand.Read(seed[:])
	payer, err := evm.ParseKey(hex.EncodeToString(seed[:]))
	if err != nil {
		return
	}
	p := audit.Payment{Payer: payer.Address().String()}
	status, _, _ := w.Fleet.Admin(ctx, w.Client, int(seed[0])%len(w.Fleet.Admins), http.MethodPost, "x402/accounts/"+p.Payer+"/fund", "",
		map[string]string{"amount": strconv.Itoa(funds)}, nil)
	if p.Funded = status == http.StatusOK || status == http.StatusCreated; !p.Funded {
		return // whether it has funds is not known
	}
	header := w.pay.sign(payer, time.Now())
	if w.chance(copies) {
		w.payEverywhere(ctx, &p, header)
	} else {
		w.payUntilAnswered(ctx, &p, header)
	}
	w.note(func(s *audit.Seen) { s.Payments = append(s.Payments, p) })
}

// payEverywhere sends copies to all edges at once.
func (w *World) payEverywhere(ctx context.Context, p *audit.Payment, header string) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, e := range w.Fleet.Edges {
		group.Go(func() {
			a := w.ask(ctx, w.clip(e.Gateway, header))
			w.judge(w.clip(e.Gateway, ""), a)
			mu.Lock()
			defer mu.Unlock()
			paid(p, a)
		})
	}
	group.Wait()
}

// payUntilAnswered repeats the same payment while there is no answer.
func (w *World) payUntilAnswered(ctx context.Context, p *audit.Payment, header string) {
	for range payTries {
		r := w.clip(w.edge().Gateway, header)
		a := w.ask(ctx, r)
		w.judge(r, a)
		paid(p, a)
		if !a.tryAgain() {
			return
		}
		w.sleep(ctx, time.Second)
	}
}

// paid notes an answer to a payment.
func paid(p *audit.Payment, a answer) {
	if !a.ok() {
		return
	}
	p.Served++
	var receipt struct{ Success bool }
	text, err := base64.StdEncoding.DecodeString(a.header.Get("X-Payment-Response"))
	if err == nil && json.Unmarshal(text, &receipt) == nil && receipt.Success {
		p.Receipts++
	}
}
