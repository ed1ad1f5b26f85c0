package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
)

// auditPage is a part of the audit log.
type auditPage struct {
	Now     time.Time
	Asked   auditQuery
	Actions []string // that there are
	Periods []since
	Entries []auditEntry
	Pager   pager
	Export  string // query of the links that export what is shown
	Faults  []decision.Detail
}

// auditQuery is what the form says, as people type it.
type auditQuery struct{ Action, Actor, Target, Account, Period, From, To string }

// auditEntry is an entry with the names of who did it and to what.
type auditEntry struct {
	audit.Entry
	ActorName, TargetName, AccountName string // empty: there is none
}

// auditQueryOf reads the form.
func auditQueryOf(q url.Values, v viewer) auditQuery {
	field := func(name string) string { return strings.TrimSpace(cut(q.Get(name))) }
	a := auditQuery{field("action"), field("actor"), field("target"), field("of"), field("period"), field("from"), field("to")}
	if !v.Operator {
		a.Account = v.Account.ID
	}
	return a
}

// dayLayout is how the form writes days.
const dayLayout = "2006-01-02"

// search is what the log is asked for. Days are those of UTC, and the last one is included.
func (s *site) auditSearch(ctx context.Context, a auditQuery) (q audit.Search, err error) {
	q.Filter = audit.Filter{Account: a.Account, Action: a.Action, Target: a.Target}
	var faults []decision.Detail
	day := func(name, text string, days int) (t time.Time) {
		if text == "" {
			return t
		}
		t, err := time.Parse(dayLayout, text)
		if err != nil {
			faults = append(faults, decision.Detail{Field: name, Issue: "is not a day", Expected: "a day such as 2026-01-31"})
		}
		return t.AddDate(0, 0, days)
	}
	q.From, q.To = day("from", a.From, 0), day("to", a.To, 1)
	if i := slices.IndexFunc(sinces, func(one since) bool { return one.Name == a.Period }); i >= 0 {
		q.From = s.Now().Add(-sinces[i].back)
	}
	if err := apierror.Invalid(faults); err != nil {
		return q, err
	}
	switch {
	case a.Actor == "":
	case strings.HasPrefix(a.Actor, "sess_"), a.Actor == audit.System:
		q.Actor = a.Actor
	default: // an e-mail address, the name of a key, or an id, which stands for itself
		found, err := s.accounts.Actors(ctx, a.Account, a.Actor)
		if err != nil {
			return q, err
		}
		q.Actors = append(found, a.Actor)
	}
	return q, nil
}

// named gives entries the names of what is in them.
func (s *site) named(ctx context.Context, list []audit.Entry) ([]auditEntry, error) {
	var ids []string
	for _, e := range list {
		ids = append(ids, e.Actor, e.Target, deref(e.Account))
	}
	names, err := s.accounts.Names(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]auditEntry, len(list))
	for i, e := range list {
		out[i] = auditEntry{Entry: e, ActorName: names[e.Actor], TargetName: names[e.Target], AccountName: names[deref(e.Account)]}
	}
	return out, nil
}

// showAudit shows who changed what. An operator sees everything, the owner of an
// account what was done to it.
func (s *site) showAudit(w http.ResponseWriter, r *http.Request, v viewer) error {
	asked := auditQueryOf(r.URL.Query(), v)
	p := auditPage{Now: s.Now(), Asked: asked, Periods: sinces, Export: exported(r.URL.Query(), v)}
	var err error
	if p.Actions, err = audit.Actions(r.Context(), s.DB, asked.Account); err != nil {
		return err
	}
	q, err := s.auditSearch(r.Context(), asked)
	if p.Faults = detailsOf(err); p.Faults != nil {
		return s.show(w, r, v, "audit", "Audit", "/audit", p)
	}
	if err != nil {
		return err
	}
	page := pageOf(r)
	list, total, err := audit.Find(r.Context(), s.DB, q, page)
	if err != nil {
		return err
	}
	p.Pager = pagerOf(r, "/audit", page, len(list), total)
	if p.Entries, err = s.named(r.Context(), list); err != nil {
		return err
	}
	return s.show(w, r, v, "audit", "Audit", "/audit", p)
}

// exported is the query of an export of what q shows to v.
func exported(q url.Values, v viewer) string {
	out := url.Values{}
	for _, name := range []string{"action", "actor", "target", "of", "period", "from", "to"} {
		if value := cut(q.Get(name)); value != "" && (name != "of" || v.Operator) {
			out.Set(name, value)
		}
	}
	return out.Encode()
}
