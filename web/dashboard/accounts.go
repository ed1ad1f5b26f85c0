package dashboard

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/platform/http/paging"
)

// accountsPage are all accounts.
type accountsPage struct {
	Now      time.Time
	Accounts []accounts.Account
	Pager    pager
}

// showAccounts shows all accounts, newest first.
func (s *site) showAccounts(w http.ResponseWriter, r *http.Request, v viewer) error {
	page := pageOf(r)
	list, total, err := paging.Rows(s.accounts.Page(r.Context(), page))
	if err != nil {
		return err
	}
	return s.show(w, r, v, "accounts", "Accounts", "/accounts", accountsPage{s.Now(), list, pagerOf(r, "/accounts", page, len(list), total)})
}

// accountForm is the form of an account.
func (s *site) accountForm(r *http.Request, a accounts.Account) (*form, error) {
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return nil, err
	}
	return &form{Back: "/accounts", Name: "All accounts", Fields: []field{
		{Name: "name", Label: "Name", Value: a.Name, Required: true, Max: 200},
		{Name: "plan", Label: "Plan", Kind: "select", Value: a.Plan, Choices: choices(now.Document.PlanNames()...)},
	}}, nil
}

// newAccount shows the form of a new account.
func (s *site) newAccount(w http.ResponseWriter, r *http.Request, v viewer) error {
	f, err := s.accountForm(r, accounts.Account{})
	if err != nil {
		return err
	}
	f.Action, f.Submit = "/accounts/new", "Create account"
	return s.ask(w, r, v, v.Account, "/accounts", "New account", f)
}

// createAccount is that form.
func (s *site) createAccount(w http.ResponseWriter, r *http.Request, v viewer) error {
	f, err := s.accountForm(r, accounts.Account{})
	if err != nil {
		return err
	}
	f.Action, f.Submit = "/accounts/new", "Create account"
	f.fill(r)
	made, err := s.accounts.Create(r.Context(), f.text("name"), f.text("plan"))
	return s.asked(w, r, v, v.Account, "/accounts", "New account", f, err, func() error {
		return seeOther(w, r, Root+"/accounts/"+made.ID+"?done=saved")
	})
}

// accountPage is one account with its form.
type accountPage struct {
	Now     time.Time
	Account accounts.Account
	Form    *form
}

// account is the account that r is about.
func (s *site) account(r *http.Request) (p accountPage, err error) {
	p.Now = s.Now()
	if p.Account, err = s.accounts.Get(r.Context(), chi.URLParam(r, "id")); err != nil {
		return p, err
	}
	if p.Form, err = s.accountForm(r, p.Account); err == nil {
		p.Form.Action, p.Form.Submit = "/accounts/"+p.Account.ID, "Save"
	}
	return p, err
}

// showAccount shows one account.
func (s *site) showAccount(w http.ResponseWriter, r *http.Request, v viewer) error {
	p, err := s.account(r)
	if err != nil {
		return err
	}
	return s.show(w, r, v, "account", p.Account.Name, "/accounts", p)
}

// changeAccount is the form that names an account anew, and moves it to another plan.
func (s *site) changeAccount(w http.ResponseWriter, r *http.Request, v viewer) error {
	p, err := s.account(r)
	if err != nil {
		return err
	}
	p.Form.fill(r)
	name, plan := p.Form.text("name"), p.Form.text("plan")
	_, err = s.accounts.Update(r.Context(), p.Account.ID, accounts.Change{Name: &name, Plan: &plan})
	switch {
	case err == nil:
		return seeOther(w, r, Root+"/accounts/"+p.Account.ID+"?done=saved")
	case !p.Form.refused(err):
		return err
	}
	return s.show(w, r, v, "account", p.Account.Name, "/accounts", p)
}

// suspendAccount keeps an account out, once that is confirmed.
func (s *site) suspendAccount(w http.ResponseWriter, r *http.Request, v viewer) error {
	p, err := s.account(r)
	if err != nil {
		return err
	}
	at, name := "/accounts/"+p.Account.ID, p.Account.Name
	return s.confirm(w, r, v, v.Account, danger{
		At: at + "/suspend", Here: "/accounts", Back: at, Place: name, Title: "Suspend " + name, Do: "Suspend account", Name: name,
		Intro: "Keys, sessions and tokens of the account are refused at every edge, its schedules do not run, and what is to be delivered to its webhooks waits, until you resume it.",
		More: []field{{Name: "reason", Label: "Reason", Hint: "The account's people read it when they sign in. Say whom to write to.", Value: p.Account.SuspendedReason,
			Required: true, Max: accounts.MaxReason}},
		Done: at, Said: "suspended",
	}, func(f *form) error {
		_, err := s.accounts.Suspend(r.Context(), p.Account.ID, f.text("reason"))
		return err
	})
}

// resumeAccount is the form that lets an account in again.
func (s *site) resumeAccount(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.accounts.Resume(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/accounts/"+a.ID, v, v.Account, "done", "account-resumed"))
}
