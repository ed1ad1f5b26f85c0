package dashboard

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/invoicing"
	"sluice.dev/sluice/controlplane/accounts/billing/methods"
	"sluice.dev/sluice/controlplane/accounts/billing/price"
	"sluice.dev/sluice/platform/http/paging"
)

// invoiceStates are those by which invoices can be chosen.
var invoiceStates = []string{billing.Open, billing.Paid, billing.Void}

// money writes an amount of a currency's smallest unit.
func money(minor int64, currency string) string {
	if price.Places(currency) == 0 {
		return number(minor) + " " + currency
	}
	sign := ""
	if minor < 0 {
		sign, minor = "-", -minor
	}
	return fmt.Sprintf("%s%s.%02d %s", sign, number(minor/100), minor%100, currency)
}

// invoices and methods are the stores of billing.
func (s *site) invoices() billing.Store { return billing.Store{DB: s.DB, Now: s.Now} }
func (s *site) methods() methods.Store {
	return methods.Store{DB: s.DB, Provider: s.Provider, Now: s.Now}
}

// billingPage is what an account has taken, owes, and pays by.
type billingPage struct {
	Now          time.Time
	Subscription billing.Subscription
	Upcoming     *billing.Bill // of this month so far; nil: the plan has no price
	Status       string        // of the invoices shown; empty: any
	States       []string
	Invoices     []billing.Invoice
	Pager        pager
	Methods      []methods.Method
	MayWrite     bool
}

// Money writes an amount.
func (billingPage) Money(minor int64, currency string) string { return money(minor, currency) }

// showBilling shows the plan, invoices and payment methods of an account.
func (s *site) showBilling(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	p := billingPage{Now: s.Now(), States: invoiceStates, MayWrite: v.Has("billing:write")}
	if p.Subscription, err = s.invoices().Subscription(r.Context(), a.ID); err != nil {
		return err
	}
	upcoming, err := invoicing.Store{DB: s.DB, Prices: s.Prices, Now: s.Now}.Upcoming(r.Context(), a.ID)
	if err != nil {
		return err
	}
	if len(upcoming.Lines) > 0 {
		p.Upcoming = &upcoming
	}
	if status := r.URL.Query().Get("status"); slices.Contains(invoiceStates, status) {
		p.Status = status
	}
	page := pageOf(r)
	var total int
	if p.Invoices, total, err = paging.Rows(s.invoices().Page(r.Context(), a.ID, p.Status, page)); err != nil {
		return err
	}
	p.Pager = pagerOf(r, "/billing", page, len(p.Invoices), total)
	if p.Methods, _, err = paging.Rows(s.methods().Page(r.Context(), a.ID, paging.Page{Limit: methods.Most})); err != nil {
		return err
	}
	return s.showOf(w, r, v, a, "billing", "Billing", "/billing", p)
}

// planForm is the form that moves an account to another plan: of those on offer, and for
// operators of all.
func (s *site) planForm(r *http.Request, v viewer) (a accounts.Account, f *form, err error) {
	if a, err = s.allowed(r, v, "billing:write"); err != nil {
		return a, nil, err
	}
	plans, err := s.invoices().Plans(r.Context())
	if err != nil {
		return a, nil, err
	}
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return a, nil, err
	}
	var list []choice
	for _, p := range now.Document.Plans {
		offered := slices.Contains(plans, billing.Plan{Name: p.Name, SelfServe: true})
		if !offered && !v.Operator && p.Name != a.Plan {
			continue
		}
		label := p.Name
		if p.Price != nil && p.Price.Monthly != "" {
			label += ", " + p.Price.Monthly + " " + p.Price.Currency + " a month"
		}
		if !offered {
			label += " (given by the operator)"
		}
		list = append(list, choice{p.Name, label})
	}
	return a, &form{Action: "/billing/plan", Back: "/billing", Name: "Billing", Submit: "Change plan",
		Intro:  "Its limits count at every edge from now on. Each day is billed by the plan that the account was on for the longest part of it.",
		Fields: []field{{Name: "plan", Label: "Plan", Kind: "select", Value: a.Plan, Choices: list}}}, nil
}

// planPage shows that form.
func (s *site) planPage(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, f, err := s.planForm(r, v)
	if err != nil {
		return err
	}
	return s.ask(w, r, v, a, "/billing", "Change plan", f)
}

// changePlan is that form.
func (s *site) changePlan(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, f, err := s.planForm(r, v)
	if err != nil {
		return err
	}
	f.fill(r)
	plan := f.text("plan")
	if v.Operator {
		_, err = s.accounts.Update(r.Context(), a.ID, accounts.Change{Plan: &plan})
	} else {
		_, err = s.invoices().Subscribe(r.Context(), a.ID, plan)
	}
	return s.asked(w, r, v, a, "/billing", "Change plan", f, err, func() error {
		return seeOther(w, r, linkOf("/billing", v, a, "done", "plan-changed"))
	})
}

// invoicePage is one invoice.
type invoicePage struct {
	billing.Bill
	States []string // to which an operator may set it
}

// Money writes an amount of the invoice.
func (p invoicePage) Money(minor int64) string { return money(minor, p.Currency) }

// invoice is the invoice that r is about.
func (s *site) invoice(r *http.Request, v viewer) (a accounts.Account, p invoicePage, err error) {
	if a, err = s.chosen(r, v); err != nil {
		return a, p, err
	}
	p.Bill, err = s.invoices().Bill(r.Context(), a.ID, chi.URLParam(r, "id"))
	return a, p, err
}

// showInvoice shows an invoice with its lines.
func (s *site) showInvoice(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, p, err := s.invoice(r, v)
	if err != nil {
		return err
	}
	if v.Operator {
		p.States = slices.DeleteFunc(slices.Clone(invoiceStates), func(state string) bool { return state == p.Status })
	}
	return s.showOf(w, r, v, a, "invoice", p.Number, "/billing", p)
}

// downloadInvoice answers with the lines of an invoice as CSV (RFC 4180), and the sum last.
func (s *site) downloadInvoice(w http.ResponseWriter, r *http.Request, v viewer) error {
	_, p, err := s.invoice(r, v)
	if err != nil {
		return err
	}
	plain := strings.Map(func(c rune) rune {
		if c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, p.Number)
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+plain+`.csv"`)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	out := csv.NewWriter(w)
	_ = out.Write([]string{"invoice", "status", "description", "plan", "metric", "period_start", "period_end", "quantity", "included", "unit_amount", "per", "amount_minor", "currency"})
	for _, l := range p.Lines {
		_ = out.Write([]string{plainCell(plain), p.Status, plainCell(l.Description), plainCell(l.Plan), l.Metric, l.PeriodStart.Format(time.DateOnly), l.PeriodEnd.Format(time.DateOnly),
			strconv.FormatInt(l.Quantity, 10), strconv.FormatInt(l.Included, 10), l.UnitAmount, strconv.FormatInt(l.Per, 10), strconv.FormatInt(l.Amount, 10), p.Currency})
	}
	_ = out.Write([]string{plainCell(plain), p.Status, "total", "", "", p.PeriodStart.Format(time.DateOnly), p.PeriodEnd.Format(time.DateOnly), "", "", "", "", strconv.FormatInt(p.Amount, 10), p.Currency})
	out.Flush()
	return nil // a browser that is gone reads no error
}

// settleInvoice is the form by which an operator says what became of an invoice.
func (s *site) settleInvoice(w http.ResponseWriter, r *http.Request, v viewer) error {
	if !v.Operator {
		return errOperators
	}
	a, p, err := s.invoice(r, v)
	if err != nil {
		return err
	}
	if _, err := s.invoices().SetStatus(r.Context(), p.ID, r.PostForm.Get("status")); err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/billing/invoices/"+p.ID, v, a, "done", "saved"))
}

// makeMethodDefault is the form that has invoices charged to a payment method.
func (s *site) makeMethodDefault(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "billing:write")
	if err != nil {
		return err
	}
	if _, err := s.methods().SetDefault(r.Context(), a.ID, chi.URLParam(r, "id")); err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/billing", v, a, "done", "saved"))
}

// methodName is by what people know a payment method.
func methodName(m methods.Method) string {
	if m.Last4 == "" {
		return cmp.Or(m.Brand, m.Type)
	}
	return cmp.Or(m.Brand, m.Type) + " " + m.Last4
}

// removeMethod takes a payment method away, once that is confirmed.
func (s *site) removeMethod(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "billing:write")
	if err != nil {
		return err
	}
	m, err := s.methods().Get(r.Context(), a.ID, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	name := methodName(m)
	return s.confirm(w, r, v, a, danger{
		At: "/billing/methods/" + m.ID + "/remove", Here: "/billing", Back: "/billing", Place: "Billing", Title: "Remove " + name, Do: "Remove payment method", Name: name,
		Intro: "Nothing is charged to it any more. To have it back, it must be added again.",
		Done:  "/billing", Said: "method-removed",
	}, func(*form) error { return s.methods().Remove(r.Context(), a.ID, m.ID) })
}
