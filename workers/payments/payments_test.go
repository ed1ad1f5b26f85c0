package payments_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/ledger"
	"sluice.dev/sluice/workers/payments/payment"
)

const (
	shop  = "0x209693bc6afc0c5328ba36faf03c514ef312287c"
	token = "0x036cbd53842c5426634e7929541ec2318f3dcf7e"
)

// testbed is a Service with a payer and a clock of its own.
type testbed struct {
	t       *testing.T
	pool    *pgxpool.Pool
	service *payments.Service
	payer   evm.Key
	now     time.Time
	// places are what sellers share; nil: no bound.
	places *fairshare.Pool
	mu     sync.Mutex
}

func newKey(t *testing.T) evm.Key {
	t.Helper()
	var b [32]byte
	rand.Read(b[:])
	k, err := evm.ParseKey(hex.EncodeToString(b[:]))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newTestbed makes a service with a settler; nil: the ledger, in which the payer has
// enough for ten payments.
func newTestbed(t *testing.T, settler payment.Settler) *testbed {
	t.Helper()
	b := &testbed{t: t, pool: pgtest.Pool(t), payer: newKey(t), now: time.Now()}
	if settler == nil {
		l := ledger.Ledger{DB: b.pool}
		if err := l.Fund(t.Context(), b.account(), 100_000); err != nil {
			t.Fatal(err)
		}
		settler = l
	}
	jobs, err := river.NewClient(riverpgxv5.New(b.pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	terms := func(context.Context) (x402.Terms, error) {
		return x402.Terms{Network: "base-sepolia", Asset: token, PayTo: shop, Name: "USDC", Version: "2"}, nil
	}
	b.service = payments.New(payments.Config{DB: b.pool, Jobs: jobs, Settler: settler, Terms: terms, Now: b.clock, Log: slog.New(slog.DiscardHandler)})
	return b
}

func (b *testbed) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *testbed) wait(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *testbed) account() ledger.Account {
	return ledger.Account{Chain: 84532, Asset: token, Address: b.payer.Address().String()}
}

// order is a good order with a nonce of its own, changed and then signed.
func (b *testbed) order(changes ...func(*payments.Order)) payments.Order {
	b.t.Helper()
	var nonce [32]byte
	rand.Read(nonce[:])
	o := payments.Order{
		Requirement: x402.Requirement{
			Terms:  x402.Terms{Network: "base-sepolia", Asset: token, PayTo: shop, Name: "USDC", Version: "2", Seconds: 60},
			Amount: 10000, Resource: "http://gw/v1/clips",
		},
		Payment: x402.Payment{
			Version: 1, Scheme: x402.Scheme, Network: "base-sepolia", From: b.payer.Address().String(), To: shop, Value: "10000",
			ValidAfter: "0", ValidBefore: x402.Number(strconv.FormatInt(b.clock().Unix()+60, 10)), Nonce: "0x" + hex.EncodeToString(nonce[:]),
		},
		Route: "clips.create", RequestID: "req-1",
	}
	for _, change := range changes {
		change(&o)
	}
	return b.signed(o)
}

func (b *testbed) signed(o payments.Order) payments.Order {
	b.t.Helper()
	asset, err := evm.ParseAddress(o.Requirement.Asset)
	if err != nil {
		b.t.Fatal(err)
	}
	p := payment.Payment{Payment: o.Payment}
	tr, err := p.Transfer()
	if err != nil {
		b.t.Fatal(err)
	}
	sig := b.payer.Sign(tr.Digest(evm.Domain{Name: o.Requirement.Name, Version: o.Requirement.Version, Chain: 84532, Token: asset}))
	o.Payment.Signature = "0x" + hex.EncodeToString(sig[:])
	return o
}

// claim makes a claim that must be granted.
func (b *testbed) claim(o payments.Order) string {
	b.t.Helper()
	id, err := b.service.Claim(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// settle returns how the claim id ends.
func (b *testbed) settle(id string) payment.Payment {
	b.t.Helper()
	p, err := b.service.Settle(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *testbed) resolve(id string) time.Duration {
	b.t.Helper()
	wait, err := b.service.Resolve(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return wait
}

func (b *testbed) state(id string) (s payment.State) {
	b.t.Helper()
	if err := b.pool.QueryRow(b.t.Context(), `SELECT state FROM x402_payments WHERE id = $1`, id).Scan(&s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// wantBalance fails unless the payer has amount, and held of it is set aside.
func (b *testbed) wantBalance(amount, held int64) {
	b.t.Helper()
	got, err := ledger.Ledger{DB: b.pool}.Balance(b.t.Context(), b.account())
	if err != nil || got.Amount != amount || got.Held != held {
		b.t.Fatalf("%+v %v, want %d with %d held", got, err, amount, held)
	}
}

// reason is why err refuses a payment; it must.
func reason(t *testing.T, err error) x402.Reason {
	t.Helper()
	r, ok := errors.AsType[*payment.Refusal](err)
	if !ok {
		t.Fatalf("not a refusal: %v", err)
	}
	return r.Reason
}

func TestPaymentIsSettledOnce(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, nil)
	o := b.order()
	id := b.claim(o)
	b.wantBalance(100_000, 10_000)
	first, again := b.settle(id), b.settle(id)
	if first.State != payment.Settled || len(first.Transaction) != 66 || again.State != payment.Settled || again.Transaction != first.Transaction {
		t.Fatalf("%+v\n%+v", first, again)
	}
	b.wantBalance(90_000, 0)
	if err := b.service.Release(t.Context(), id); err != nil || b.state(id) != payment.Settled {
		t.Error("a settled payment was released", err)
	}
	if got := reason(t, b.service.Verify(t.Context(), o)); got != x402.NonceUsed {
		t.Error(got)
	}
	shopHas, err := ledger.Ledger{DB: b.pool}.Balance(t.Context(), ledger.Account{Chain: 84532, Asset: token, Address: shop})
	if err != nil || shopHas.Received != 10_000 {
		t.Errorf("%+v %v", shopHas, err)
	}
}

// Whatever the number of copies and services, one of them gets through.
func TestCopiesOfOnePayment(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, nil)
	o := b.order()
	var granted sync.Map
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if id, err := b.service.Claim(context.WithoutCancel(t.Context()), o); err == nil {
				granted.Store(id, true)
			} else if r, ok := errors.AsType[*payment.Refusal](err); !ok || r.Reason != x402.NonceUsed {
				t.Errorf("%v", err)
			}
		})
	}
	group.Wait()
	n := 0
	granted.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d grants", n)
	}
	b.wantBalance(100_000, 10_000)
}

func TestReplays(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, nil)
	o := b.order()
	b.settle(b.claim(o))
	for name, change := range map[string]func(*payments.Order){
		"as it was":      func(*payments.Order) {},
		"other route":    func(o *payments.Order) { o.Route, o.Requirement.Resource = "vod.create", "http://gw/v1/vod" },
		"other spelling": func(o *payments.Order) { o.Requirement.Asset = "0x" + strings.ToUpper(token[2:]) },
		"as version 2": func(o *payments.Order) {
			o.Payment.Version, o.Payment.Network = 2, "eip155:84532"
			o.Payment.Asset, o.Payment.PayTo, o.Payment.Amount = token, shop, "10000"
		},
	} {
		again := o
		change(&again)
		if _, err := b.service.Claim(t.Context(), again); reason(t, err) != x402.NonceUsed {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.wantBalance(90_000, 0)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	b, other := newTestbed(t, nil), newKey(t)
	for name, c := range map[string]struct {
		order payments.Order
		want  x402.Reason
	}{
		"signed for another price":   {changed(b.order(), func(o *payments.Order) { o.Requirement.Amount, o.Payment.Value = 1, "1" }), x402.BadSignature},
		"signed for another chain":   {changed(b.order(), func(o *payments.Order) { o.Requirement.Network, o.Payment.Network = "base", "base" }), x402.BadNetwork},
		"signed for another token":   {changed(b.order(), func(o *payments.Order) { o.Requirement.Asset = shop }), x402.BadRequirements},
		"signed for another name":    {changed(b.order(), func(o *payments.Order) { o.Requirement.Name = "USD Coin" }), x402.BadRequirements},
		"signed with another nonce":  {changed(b.order(), func(o *payments.Order) { o.Payment.Nonce = "0x" + strings.Repeat("00", 32) }), x402.BadSignature},
		"signed for longer":          {changed(b.order(), func(o *payments.Order) { o.Payment.ValidBefore += "0" }), x402.BadSignature},
		"signed by another":          {changed(b.order(), func(o *payments.Order) { o.Payment.From = other.Address().String() }), x402.BadSignature},
		"with high s":                {changed(b.order(), highS(t)), x402.BadSignature},
		"of somebody without funds":  {b.order(func(o *payments.Order) { o.Requirement.Amount, o.Payment.Value = 100_001, "100001" }), x402.NoFunds},
		"ended":                      {b.order(func(o *payments.Order) { o.Payment.ValidBefore = "1000" }), x402.TooLate},
		"for nothing":                {b.order(func(o *payments.Order) { o.Requirement.Amount, o.Payment.Value = 0, "0" }), x402.BadRequirements},
		"for more than can be noted": {b.order(func(o *payments.Order) { o.Requirement.Amount, o.Payment.Value = 1<<63, "9223372036854775808" }), x402.BadRequirements},
	} {
		if got := reason(t, b.service.Verify(t.Context(), c.order)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if _, err := b.service.Claim(t.Context(), c.order); reason(t, err) != c.want {
			t.Errorf("%s: claimed: %v", name, err)
		}
	}
	b.wantBalance(100_000, 0)
}

func changed(o payments.Order, change func(*payments.Order)) payments.Order {
	change(&o)
	return o
}

// highS gives a signature its other spelling.
func highS(t *testing.T) func(*payments.Order) {
	return func(o *payments.Order) {
		raw, err := evm.Bytes(o.Payment.Signature, 65)
		if err != nil {
			t.Fatal(err)
		}
		order, _ := hex.DecodeString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
		borrow := 0
		for i := 31; i >= 0; i-- {
			d := int(order[i]) - int(raw[32+i]) - borrow
			borrow = 0
			if d < 0 {
				d, borrow = d+256, 1
			}
			raw[32+i] = byte(d)
		}
		raw[64] = 27 + 28 - raw[64]
		o.Payment.Signature = "0x" + hex.EncodeToString(raw)
	}
}

// A payer with enough for ten payments gets ten.
func TestFundsAreSetAside(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, nil)
	var mu sync.Mutex
	var ids []string
	var group sync.WaitGroup
	for range 20 {
		o := b.order()
		group.Go(func() {
			if id, err := b.service.Claim(context.WithoutCancel(t.Context()), o); err == nil {
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
			} else if r, ok := errors.AsType[*payment.Refusal](err); !ok || r.Reason != x402.NoFunds {
				t.Errorf("%v", err)
			}
		})
	}
	group.Wait()
	if len(ids) != 10 {
		t.Fatalf("%d grants", len(ids))
	}
	b.wantBalance(100_000, 100_000)
	for _, id := range ids {
		if p := b.settle(id); p.State != payment.Settled {
			t.Fatalf("%+v", p)
		}
	}
	b.wantBalance(0, 0)
}

func TestReleasedPaymentCostsNothingAndIsSpent(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, nil)
	o := b.order()
	id := b.claim(o)
	for range 2 {
		if err := b.service.Release(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	b.wantBalance(100_000, 0)
	if p := b.settle(id); p.State != payment.Released {
		t.Errorf("%+v", p)
	}
	if _, err := b.service.Claim(t.Context(), o); reason(t, err) != x402.NonceUsed {
		t.Error(err)
	}
}

func TestPaymentThatEndsInFlight(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, nil)
	id := b.claim(b.order())
	b.wait(time.Minute)
	if p := b.settle(id); p.State != payment.Failed || p.Reason != x402.TooLate {
		t.Errorf("%+v", p)
	}
	b.wantBalance(100_000, 0)
}

// A claim of which nothing is heard is given up: nothing is charged.
func TestForgottenClaim(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, nil)
	short, long := b.claim(b.order()), b.claim(b.order(func(o *payments.Order) { o.Payment.ValidBefore = "99999999999" }))
	if wait := b.resolve(short); wait < time.Minute || wait > 71*time.Second {
		t.Error(wait)
	}
	b.wait(71 * time.Second)
	if wait := b.resolve(short); wait != 0 || b.state(short) != payment.Abandoned {
		t.Error(wait, b.state(short))
	}
	if wait := b.resolve(long); wait < 10*time.Minute || b.state(long) != payment.Granted {
		t.Error(wait, b.state(long))
	}
	b.wait(15 * time.Minute)
	if wait := b.resolve(long); wait != 0 || b.state(long) != payment.Abandoned {
		t.Error(wait, b.state(long))
	}
	b.wantBalance(100_000, 0)
	if p := b.settle(long); p.State != payment.Abandoned {
		t.Errorf("%+v", p)
	}
}

func TestUnknownPayment(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, nil)
	if _, err := b.service.Settle(t.Context(), "xpay_none"); apierror.Code(err) != decision.NotFound {
		t.Error(err)
	}
	if err := b.service.Release(t.Context(), "xpay_none"); err != nil {
		t.Error(err)
	}
	if wait := b.resolve("xpay_none"); wait != 0 {
		t.Error(wait)
	}
}

// remote is a settler elsewhere that does as it is told.
type remote struct {
	checks, settles int
	again           []bool
	check           error
	settle          []error // one after the other; then nil
}

func (r *remote) Open() bool                                   { return false }
func (r *remote) Check(context.Context, payment.Payment) error { r.checks++; return r.check }
func (r *remote) Settle(_ context.Context, _ payment.Payment, again bool) (string, error) {
	r.settles++
	r.again = append(r.again, again)
	if len(r.settle) >= r.settles && r.settle[r.settles-1] != nil {
		return "", r.settle[r.settles-1]
	}
	return "0xabc", nil
}

var errCut = errors.New("no answer")

func TestSettlementElsewhere(t *testing.T) {
	t.Parallel()
	r := &remote{}
	b := newTestbed(t, r)
	o := b.order()
	id := b.claim(o)
	if p := b.settle(id); p.State != payment.Settled || p.Transaction != "0xabc" || r.checks != 1 || r.settles != 1 {
		t.Errorf("%+v %+v", p, r)
	}
	if _, err := b.service.Claim(t.Context(), o); reason(t, err) != x402.NonceUsed || r.checks != 1 {
		t.Errorf("%v %+v", err, r)
	}
}

func TestSettlementElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	r := &remote{settle: []error{payment.Refuse(x402.NoFunds)}}
	b := newTestbed(t, r)
	id := b.claim(b.order())
	if p := b.settle(id); p.State != payment.Failed || p.Reason != x402.NoFunds {
		t.Errorf("%+v", p)
	}
	r.check = payment.Refuse(x402.NoFunds)
	if _, err := b.service.Claim(t.Context(), b.order()); reason(t, err) != x402.NoFunds {
		t.Error(err)
	}
}

// A settlement without an answer is not lost and not made twice by us: the job
// asks again until somebody knows.
func TestSettlementWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	r := &remote{settle: []error{errCut, errCut}}
	b := newTestbed(t, r)
	id := b.claim(b.order())
	if p := b.settle(id); p.State != payment.Settling {
		t.Fatalf("%+v", p)
	}
	if p := b.settle(id); p.State != payment.Settling || r.settles != 1 {
		t.Fatalf("an edge that asks again does not settle again: %+v %+v", p, r)
	}
	if wait := b.resolve(id); wait <= 0 {
		t.Fatal(wait)
	}
	if wait := b.resolve(id); wait != 0 || b.state(id) != payment.Settled || fmt.Sprint(r.again) != "[false true true]" {
		t.Errorf("%v %s %+v", wait, b.state(id), r)
	}
}

func TestSettlementThatIsNeverKnown(t *testing.T) {
	t.Parallel()
	r := &remote{}
	for range 60 {
		r.settle = append(r.settle, errCut)
	}
	b := newTestbed(t, r)
	id := b.claim(b.order())
	b.settle(id)
	for range 49 {
		if wait := b.resolve(id); wait <= 0 || wait > time.Minute {
			t.Fatal(wait)
		}
	}
	if wait := b.resolve(id); wait != 0 || b.state(id) != payment.Unresolved {
		t.Error(wait, b.state(id))
	}
}

// Each claim leaves a job behind, in its own transaction.
func TestEveryClaimHasAJob(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, nil)
	id := b.claim(b.order())
	if _, err := b.service.Claim(t.Context(), changed(b.order(), highS(t))); err == nil {
		t.Fatal("granted")
	}
	rows, err := b.pool.Query(t.Context(), `SELECT args->>'payment' FROM river_job WHERE kind = 'x402_resolve'`)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || fmt.Sprint(jobs) != "["+id+"]" {
		t.Error(jobs, err)
	}
}
