package payments

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/workers/payments/payment"
)

// EdgeHandler serves edges, on the address of the key feed:
//
//	POST /hub/v1/claims               201 with x402.IDHeader, 402 with x402.ReasonHeader
//	POST /hub/v1/claims/{id}/settle   200 settled, 202 not known yet, 402 with x402.ReasonHeader; all with x402.ReceiptHeader
//	POST /hub/v1/claims/{id}/release  204
//
// Edges show that they are edges by an identity that they sign themselves. A
// call that fails in any other way may have had its effect or not.
func (s *Service) EdgeHandler(v identity.Verifier, a httpapi.Adapter) http.Handler {
	r := chi.NewRouter()
	r.NotFound(a.NotFound)
	r.MethodNotAllowed(a.MethodNotAllowed)
	r.Use(v.Require(a), edgesOnly(a))
	r.Post(x402.ClaimsPath, a.Handle(s.serveClaim))
	r.Post(x402.ClaimsPath+"/{id}/settle", a.Handle(s.serveSettle))
	r.Post(x402.ClaimsPath+"/{id}/release", httpapi.Handle(a, http.StatusNoContent, func(r *http.Request, _ httpapi.None) (httpapi.None, error) {
		return httpapi.None{}, s.Release(r.Context(), chi.URLParam(r, "id"))
	}))
	return r
}

// edgesOnly refuses identities that an edge has signed for somebody else.
func edgesOnly(a httpapi.Adapter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			if c, _ := identity.From(r.Context()); c.Key != identityheader.EdgeKey || c.Account != "" {
				return &apierror.Error{Code: decision.AuthRequired}
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

func (s *Service) serveClaim(w http.ResponseWriter, r *http.Request) error {
	o, err := ReadOrder(w, r)
	if err != nil {
		return err
	}
	id, err := s.Claim(r.Context(), o)
	if refusal, ok := errors.AsType[*payment.Refusal](err); ok {
		w.Header().Set(x402.ReasonHeader, string(refusal.Reason))
		w.WriteHeader(http.StatusPaymentRequired)
		return nil
	}
	if err != nil {
		return err
	}
	w.Header().Set(x402.IDHeader, id)
	w.WriteHeader(http.StatusCreated)
	return nil
}

func (s *Service) serveSettle(w http.ResponseWriter, r *http.Request) error {
	p, err := s.Settle(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	told := receiptOf(p)
	w.Header().Set(x402.ReceiptHeader, told.header())
	switch {
	case told.Success:
		w.WriteHeader(http.StatusOK)
	case told.ErrorReason == x402.SettlePending:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set(x402.ReasonHeader, string(told.ErrorReason))
		w.WriteHeader(http.StatusPaymentRequired)
	}
	return nil
}
