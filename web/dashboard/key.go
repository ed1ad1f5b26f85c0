package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// keyPage is one key.
type keyPage struct {
	Now      time.Time
	Key      apikeys.Key
	Made     *apikeys.Created // what it was rotated into by this very form: shown this once
	Lacks    []string         // scopes of the key that the viewer has not, and so cannot change it
	Overlaps []overlap
	// Name and Limit are what stands in the form; Problem is why it was refused.
	Name, Limit string
	Problem     []decision.Detail
}

// overlap is for how long an old secret works beside its successor.
type overlap struct {
	Name, Label string
	life        time.Duration
}

// overlaps are those that can be chosen; the third is proposed.
var overlaps = []overlap{
	{"none", "no time: it expires at once", 0},
	{"hour", "an hour", time.Hour},
	{"day", "a day", apikeys.DefaultOverlap},
	{"week", "a week", apikeys.MaxOverlap},
}

// overlapOf is the overlap that a form asks for.
func overlapOf(r *http.Request) (time.Duration, error) {
	i := slices.IndexFunc(overlaps, func(o overlap) bool { return o.Name == r.PostForm.Get("overlap") })
	if i < 0 {
		return 0, apierror.Errorf(decision.InvalidRequest, "The form does not say how long both secrets should work.")
	}
	return overlaps[i].life, nil
}

// showKey shows one key.
func (s *site) showKey(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	return s.keyWith(w, r, v, a, keyPage{})
}

// keyWith shows it with what a form has done.
func (s *site) keyWith(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, p keyPage) (err error) {
	p.Now, p.Overlaps = s.Now().UTC(), overlaps
	if p.Key, err = s.keys.Get(r.Context(), a.ID, cmp.Or(madeOf(p.Made), chi.URLParam(r, "id"))); err != nil {
		return err
	}
	for _, scope := range p.Key.Scopes {
		if !v.Has(scope) {
			p.Lacks = append(p.Lacks, scope)
		}
	}
	if p.Problem == nil {
		p.Name = p.Key.Name
		if p.Key.PerMinute != nil {
			p.Limit = strconv.FormatUint(uint64(*p.Key.PerMinute), 10)
		}
	}
	return s.showOf(w, r, v, a, "key", p.Key.Name, "/keys", p)
}

// madeOf is the id of a key that was just made; "" for none.
func madeOf(made *apikeys.Created) string {
	if made == nil {
		return ""
	}
	return made.ID
}

// rotateKey is the form that makes a key's successor, whose text the answer shows
// this once. The key itself works on for the overlap that was chosen.
func (s *site) rotateKey(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	life, err := overlapOf(r)
	if err != nil {
		return err
	}
	made, err := s.keys.Rotate(r.Context(), a.ID, chi.URLParam(r, "id"), life, v.Scopes)
	if err != nil {
		return err
	}
	return s.keyWith(w, r, v, a, keyPage{Made: &made})
}

// changeKey is the form that names a key anew and limits it.
func (s *site) changeKey(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	p := keyPage{Name: r.PostForm.Get("name"), Limit: strings.TrimSpace(r.PostForm.Get("limit"))}
	change := apikeys.Change{Name: &p.Name, Limited: true}
	if p.Limit != "" {
		n, err := strconv.ParseUint(p.Limit, 10, 32)
		if err != nil || n < 1 || n > apikeys.MaxPerMinute {
			p.Problem = []decision.Detail{{Field: "limit", Issue: "is not a number of requests", Expected: "1 to 1000000000, or nothing for no limit of its own"}}
			return s.keyWith(w, r, v, a, p)
		}
		perMinute := uint32(n)
		change.PerMinute = &perMinute
	}
	k, err := s.keys.Change(r.Context(), a.ID, chi.URLParam(r, "id"), change, v.Scopes)
	if p.Problem = detailsOf(err); p.Problem != nil {
		return s.keyWith(w, r, v, a, p)
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/keys/"+k.ID, v, a, "done", "saved"))
}

// revokeKey ends a key, once that is confirmed.
func (s *site) revokeKey(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	k, err := s.keys.Get(r.Context(), a.ID, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(k.Scopes, func(scope string) bool { return !v.Has(scope) }) {
		return apierror.Errorf(decision.ScopeMissing, "You cannot revoke a key that has scopes which you do not have.")
	}
	at := "/keys/" + k.ID
	return s.confirm(w, r, v, a, danger{
		At: at + "/revoke", Here: "/keys", Back: at, Place: k.Name, Title: "Revoke " + k.Name, Do: "Revoke key", Name: k.Name,
		Intro: "Every edge refuses the key " + k.ID + " from then on. This cannot be undone.",
		Done:  "/keys", Said: "revoked",
	}, func(*form) error { return s.keys.Revoke(r.Context(), a.ID, k.ID, v.Scopes) })
}
