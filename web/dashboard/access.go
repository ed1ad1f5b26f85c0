package dashboard

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
)

// errOperators is what others are told of what operators alone may do.
var errOperators = apierror.Errorf(decision.ScopeMissing, "Only operators of the platform may do this.")

// accessPage says from where an account may call, and how often.
type accessPage struct {
	Allowlist []netip.Prefix
	Limits    []accounts.Limit // of the account itself; for operators
	MayWrite  bool             // the allowlist
}

// showAccess shows an account's allowlist, and to operators its limits.
func (s *site) showAccess(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	p := accessPage{MayWrite: v.Has("users:write")}
	if p.Allowlist, err = s.accounts.Allowlist(r.Context(), a.ID); err != nil {
		return err
	}
	if v.Operator {
		if p.Limits, err = s.accounts.Limits(r.Context(), a.ID); err != nil {
			return err
		}
	}
	return s.showOf(w, r, v, a, "access", "Limits and allowlist", "/access", p)
}

// allowlistForm is the form of an account's allowlist. Whoever belongs to the account is
// kept from shutting out the address they are at, unless they mean it.
func (s *site) allowlistForm(r *http.Request, v viewer) (a accounts.Account, f *form, err error) {
	if a, err = s.allowed(r, v, "users:write"); err != nil {
		return a, nil, err
	}
	list, err := s.accounts.Allowlist(r.Context(), a.ID)
	if err != nil {
		return a, nil, err
	}
	var lines []string
	for _, p := range list {
		lines = append(lines, p.String())
	}
	f = &form{Action: "/access/allowlist", Back: "/access", Name: "Limits and allowlist", Submit: "Save", Intro: "With any credential, the account may call from these addresses only.", Fields: []field{
		{Name: "addresses", Label: "Addresses", Kind: "area", Hint: "A line each, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32; empty: from anywhere.", Value: strings.Join(lines, "\n"), Max: 4000},
	}}
	if a.ID == v.Account.ID {
		f.Fields = append(f.Fields, field{Name: "force", Kind: "check", Label: "Save it even if it shuts out the address I am at, " + identity.ClientAddress(r)})
	}
	return a, f, nil
}

// allowlistPage shows that form.
func (s *site) allowlistPage(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, f, err := s.allowlistForm(r, v)
	if err != nil {
		return err
	}
	return s.ask(w, r, v, a, "/access", "Allowlist", f)
}

// setAllowlist is that form.
func (s *site) setAllowlist(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, f, err := s.allowlistForm(r, v)
	if err != nil {
		return err
	}
	f.fill(r)
	if a.ID == v.Account.ID {
		_, err = s.accounts.SetOwnAllowlist(r.Context(), a.ID, f.parts("addresses"), strconv.FormatBool(f.text("force") != ""), identity.ClientAddress(r))
	} else {
		_, err = s.accounts.SetAllowlist(r.Context(), a.ID, f.parts("addresses"))
	}
	return s.asked(w, r, v, a, "/access", "Allowlist", f, err, func() error {
		return seeOther(w, r, linkOf("/access", v, a, "done", "saved"))
	})
}

// limitForm is the form of a limit of an account.
func (s *site) limitForm(r *http.Request, v viewer) (a accounts.Account, f *form, err error) {
	if a, err = s.operated(r, v); err != nil {
		return a, nil, err
	}
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return a, nil, err
	}
	var classes []choice
	for _, c := range now.Document.Classes {
		classes = append(classes, choice{c.Name, c.Name})
	}
	return a, &form{Action: "/access/limit", Back: "/access", Name: "Limits and allowlist", Submit: "Set limit", Intro: "It counts for this account in place of the plan's, at every edge.", Fields: []field{
		{Name: "class", Label: "Limit class", Kind: "select", Value: r.URL.Query().Get("class"), Choices: classes},
		{Name: "per_minute", Label: "Requests a minute", Kind: "number", Required: true, Max: 10},
	}}, nil
}

// limitPage shows that form.
func (s *site) limitPage(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, f, err := s.limitForm(r, v)
	if err != nil {
		return err
	}
	return s.ask(w, r, v, a, "/access", "Set a limit", f)
}

// setLimit is that form.
func (s *site) setLimit(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, f, err := s.limitForm(r, v)
	if err != nil {
		return err
	}
	f.fill(r)
	n, err := strconv.Atoi(f.text("per_minute"))
	if err != nil {
		err = apierror.Invalid([]decision.Detail{{Field: "per_minute", Issue: "is not a whole number"}})
	} else {
		err = s.accounts.SetLimit(r.Context(), a.ID, accounts.Limit{Class: f.text("class"), PerMinute: n})
	}
	return s.asked(w, r, v, a, "/access", "Set a limit", f, err, func() error {
		return seeOther(w, r, linkOf("/access", v, a, "done", "saved"))
	})
}

// removeLimit is the form that takes a limit away.
func (s *site) removeLimit(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.operated(r, v)
	if err != nil {
		return err
	}
	if err := s.accounts.RemoveLimit(r.Context(), a.ID, chi.URLParam(r, "class")); err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/access", v, a, "done", "limit-removed"))
}
