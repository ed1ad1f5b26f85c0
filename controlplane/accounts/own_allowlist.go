package accounts

import (
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
)

// Routes mounts the routes by which a caller manages the allowlist of its own
// account. need gives the middleware that asks for a scope.
func (a API) Routes(r chi.Router, need func(scope string) func(http.Handler) http.Handler) {
	r.With(need("users:read")).Get("/v1/account/allowlist", a.Respond.Handle(a.ownAllowlist))
	r.With(need("users:write")).Put("/v1/account/allowlist", a.Respond.Handle(a.setOwnAllowlist))
}

// ownAllowlist answers GET /v1/account/allowlist.
func (a API) ownAllowlist(w http.ResponseWriter, r *http.Request) error {
	return a.answerAllowlist(w, r, identity.Account(r.Context()))
}

// setOwnAllowlist answers PUT /v1/account/allowlist. A list that would shut the
// caller out at once is refused, unless ?force=true.
func (a API) setOwnAllowlist(w http.ResponseWriter, r *http.Request) error {
	texts, err := readAddresses(w, r)
	if err != nil {
		return err
	}
	list, err := parseAllowlist(texts)
	if err != nil {
		return err
	}
	if err := checkForce(r.URL.Query().Get("force"), list, identity.ClientAddress(r)); err != nil {
		return err
	}
	return a.replaceAllowlist(w, r, identity.Account(r.Context()), texts)
}

// checkForce refuses a list that has no room for the caller's own address, and a
// force that is neither true nor false.
func checkForce(force string, list []netip.Prefix, caller string) error {
	switch {
	case force == "true":
		return nil
	case force != "" && force != "false":
		return apierror.Invalid([]decision.Detail{{Field: "force", Issue: "is not a truth value", Expected: "true or false"}})
	case len(list) == 0 || holds(list, caller):
		return nil
	}
	return apierror.Invalid([]decision.Detail{{Field: "addresses", Issue: "shuts out the address that you call from, " + caller,
		Expected: "a block that holds it, or ?force=true"}})
}

// holds reports whether one of the blocks holds address, which has no port.
func holds(list []netip.Prefix, address string) bool {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, p := range list {
		if p.Contains(addr.Unmap().WithZone("")) {
			return true
		}
	}
	return false
}
