package dashboard

import (
	"net/http"
	"slices"
	"time"

	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/payments/payment"
)

// paymentsPage are the payments that sellers here were paid.
type paymentsPage struct {
	Now      time.Time
	State    string // of those shown; empty: any
	States   []payment.State
	Payments payments.Payments
	Pager    pager
}

// paymentStates are those by which payments can be chosen.
var paymentStates = []payment.State{payment.Settled, payment.Settling, payment.Granted, payment.Failed, payment.Released, payment.Abandoned, payment.Unresolved}

// showPayments shows what was paid by x402.
func (s *site) showPayments(w http.ResponseWriter, r *http.Request, v viewer) error {
	p := paymentsPage{Now: s.Now(), States: paymentStates}
	if state := r.URL.Query().Get("state"); slices.Contains(paymentStates, payment.State(state)) {
		p.State = state
	}
	page := pageOf(r)
	var err error
	if p.Payments, err = s.Payments.Find(r.Context(), page, "", p.State, ""); err != nil {
		return err
	}
	p.Pager = pagerOf(r, "/payments", page, len(p.Payments.Data), *p.Payments.Pagination.Total)
	return s.show(w, r, v, "payments", "Payments", "/payments", p)
}
