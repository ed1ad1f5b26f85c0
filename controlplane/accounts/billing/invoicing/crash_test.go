package invoicing

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/price"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe/stripetest"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/process/child"
)

// processEnv makes this test binary a worker that issues and collects until it is killed: the
// variable holds the database, Stripe's address and the time, with spaces between.
const processEnv = "SLUICE_TEST_INVOICING"

func init() {
	text := os.Getenv(processEnv)
	if text == "" {
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	of := strings.Fields(text)
	clock, err := time.Parse(time.RFC3339, of[2])
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, of[0])
	if err != nil {
		panic(err)
	}
	s := Store{DB: pool, Now: func() time.Time { return clock }, Prices: pricesOfCrashes,
		Provider: stripe.New(stripe.Config{Key: stripetest.Key, URL: of[1], Client: outbound.New(outbound.Config{
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxBody: stripe.MaxAnswer, Timeout: 20 * time.Second})})}
	for {
		_, _ = s.Issue(ctx)
		_, _ = s.Collect(ctx)
	}
}

func pricesOfCrashes(_ context.Context, when time.Time) (Prices, error) {
	if when.Before(at("2026-11-20 00:00")) {
		return Prices{}, nil
	}
	return Prices{7, map[string]price.Plan{"pro": {Currency: "USD", Monthly: 2900}}}, nil
}

// TestWorkersAreKilledAtEachCall kills -9 whoever collects when Stripe has carried out its
// first call, its second and so on, before it is answered. In the end each invoice is paid, by
// one charge.
func TestWorkersAreKilledAtEachCall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Prices = pricesOfCrashes
	m := b.charged(t)
	const many, kills = 30, 8
	var all []string
	for i := range many {
		all = append(all, b.account(t, "pro"))
		if _, err := m.Add(t.Context(), all[i], fmt.Sprint("pm_", i), false); err != nil {
			t.Fatal(err)
		}
	}
	for n := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", processEnv, b.db.Config().ConnString(), b.server.URL, b.clock.Format(time.RFC3339)))
		var calls atomic.Int32
		dead := make(chan struct{})
		var worker *child.Process
		started := make(chan struct{})
		b.server.Carried(func() {
			<-started
			if calls.Add(1) == int32(n+1) {
				_ = worker.Signal(syscall.SIGKILL)
				<-worker.Done()
				close(dead)
			}
		})
		var err error
		if worker, err = child.Start(cmd, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		close(started)
		<-dead
		b.server.Forget()
		b.clock = b.clock.Add(lease)
	}
	b.server.Carried(nil)
	if _, err := b.Issue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, account := range all {
		if bill := b.bill(t, account); bill.Status != billing.Paid {
			t.Errorf("%s: %+v", bill.Status, *bill.Collection)
		}
	}
	if b.server.Charges() != many {
		t.Errorf("%d charges of %d invoices", b.server.Charges(), many)
	}
}
