package dashboard

import (
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/accounts/team"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
)

// roles are those that can be given.
var roles = []choice{{accounts.Member, "member: what scopes allow"}, {accounts.Admin, "admin: everything"}, {accounts.Owner, "owner: everything"}}

// team are the people of accounts.
func (s *site) team() team.Store { return team.Store{DB: s.DB, Now: s.Now} }

// peoplePage are the people of an account.
type peoplePage struct {
	Now      time.Time
	People   []accounts.User
	Pager    pager
	MayWrite bool
}

// showPeople shows the people of an account.
func (s *site) showPeople(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	page := pageOf(r)
	list, total, err := paging.Rows(s.team().Page(r.Context(), a.ID, page))
	if err != nil {
		return err
	}
	return s.showOf(w, r, v, a, "people", "People", "/people", peoplePage{s.Now(), list, pagerOf(r, "/people", page, len(list), total), v.Has("users:write")})
}

// invitation is the form that invites somebody.
func invitation() *form {
	return &form{Action: "/people/new", Back: "/people", Name: "All people", Submit: "Invite", Intro: "No mail is sent: you get the invitation's token, which you pass on yourself.", Fields: []field{
		{Name: "email", Label: "E-mail address", Kind: "email", Required: true, Max: 254},
		{Name: "role", Label: "Role", Kind: "select", Value: accounts.Member, Choices: roles},
	}}
}

// newPerson shows that form.
func (s *site) newPerson(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "users:write")
	if err != nil {
		return err
	}
	return s.ask(w, r, v, a, "/people", "Invite somebody", invitation())
}

// invitePerson is that form. Only who has everything may invite owners and admins.
func (s *site) invitePerson(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "users:write")
	if err != nil {
		return err
	}
	f := invitation()
	f.fill(r)
	i, err := s.team().Invite(r.Context(), a.ID, f.text("email"), f.text("role"), v.Scopes)
	return s.asked(w, r, v, a, "/people", "Invite somebody", f, err, func() error {
		return s.made(w, r, v, a, "/people", "Invitation created", madePage{
			Label: "The invitation's token", Text: i.Token, Intro: "Pass it on: it is accepted with a password of the person's choice, by POST /v1/auth/invitations/accept.",
			Facts: []choice{{i.Email, "E-mail address"}, {i.Role, "Role"}, {instant(i.ExpiresAt), "Valid until"}}, Next: "/people", Name: "All people",
		})
	})
}

// addition is the form by which an operator adds somebody who can sign in at once.
func addition() *form {
	f := invitation()
	f.Action, f.Submit, f.Intro = "/people/add", "Add", "They can sign in at once, with this password."
	f.Fields = append(f.Fields, field{Name: "password", Label: "Password", Kind: "password", Required: true, Max: sessions.MaxPassword})
	return f
}

// operated is chosen for what operators alone may do.
func (s *site) operated(r *http.Request, v viewer) (accounts.Account, error) {
	if !v.Operator {
		return accounts.Account{}, errOperators
	}
	return s.chosen(r, v)
}

// addPersonPage shows that form.
func (s *site) addPersonPage(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.operated(r, v)
	if err != nil {
		return err
	}
	return s.ask(w, r, v, a, "/people", "Add somebody", addition())
}

// addPerson is that form.
func (s *site) addPerson(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.operated(r, v)
	if err != nil {
		return err
	}
	f := addition()
	f.fill(r)
	email, role, password := accounts.NormalEmail(f.text("email")), f.text("role"), r.PostForm.Get("password")
	err = apierror.Invalid(slices.Concat(accounts.CheckEmail(email), accounts.CheckRole(role), sessions.CheckPassword(password)))
	if err == nil {
		var hash string
		if hash, err = sessions.HashPassword(r.Context(), password, ""); err == nil {
			_, err = s.accounts.AddUser(r.Context(), a.ID, email, role, hash)
		}
	}
	return s.asked(w, r, v, a, "/people", "Add somebody", f, err, func() error {
		return seeOther(w, r, linkOf("/people", v, a, "done", "saved"))
	})
}

// person is the person that r is about, with the form of their role.
func (s *site) person(r *http.Request, v viewer) (a accounts.Account, u accounts.User, f *form, err error) {
	if a, err = s.allowed(r, v, "users:write"); err != nil {
		return a, u, nil, err
	}
	if u, err = s.team().Get(r.Context(), a.ID, chi.URLParam(r, "id")); err != nil {
		return a, u, nil, err
	}
	return a, u, &form{Action: "/people/" + u.ID, Back: "/people", Name: "All people", Submit: "Change role",
		Intro:  "Another role ends the person's sessions: they sign in again.",
		Fields: []field{{Name: "role", Label: "Role", Kind: "select", Value: u.Role, Choices: roles}}}, nil
}

// showPerson shows the form of somebody's role.
func (s *site) showPerson(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, u, f, err := s.person(r, v)
	if err != nil {
		return err
	}
	return s.ask(w, r, v, a, "/people", u.Email, f)
}

// changePerson is that form.
func (s *site) changePerson(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, u, f, err := s.person(r, v)
	if err != nil {
		return err
	}
	f.fill(r)
	_, err = s.team().SetRole(r.Context(), a.ID, u.ID, f.text("role"), v.Scopes)
	return s.asked(w, r, v, a, "/people", u.Email, f, err, func() error {
		return seeOther(w, r, linkOf("/people", v, a, "done", "saved"))
	})
}

// removePerson removes somebody from an account, once that is confirmed.
func (s *site) removePerson(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, u, _, err := s.person(r, v)
	if err != nil {
		return err
	}
	return s.confirm(w, r, v, a, danger{
		At: "/people/" + u.ID + "/remove", Here: "/people", Back: "/people", Place: "All people", Title: "Remove " + u.Email, Do: "Remove person", Name: u.Email,
		Intro: "The person is signed out everywhere. Keys that they made belong to the account, and stay.",
		Done:  "/people", Said: "removed",
	}, func(*form) error { return s.team().Remove(r.Context(), a.ID, u.ID, v.Scopes) })
}
