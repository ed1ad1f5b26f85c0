package dashboard

import (
	"net/http"
	"time"

	"sluice.dev/sluice/platform/storage/audit"
)

// auditPage is a part of the audit log.
type auditPage struct {
	Now     time.Time
	Filter  audit.Filter
	Entries []audit.Entry
	Pager   pager
}

// showAudit shows who changed what. An operator sees everything, the owner of an
// account what was done to it.
func (s *site) showAudit(w http.ResponseWriter, r *http.Request, v viewer) error {
	q := r.URL.Query()
	p := auditPage{Now: s.Now(), Filter: audit.Filter{Account: cut(q.Get("of")), Actor: cut(q.Get("actor")), Action: cut(q.Get("action")), Target: cut(q.Get("target"))}}
	if !v.Operator {
		p.Filter.Account = v.Account.ID
	}
	page := pageOf(r)
	list, total, err := audit.List(r.Context(), s.DB, p.Filter, page)
	if err != nil {
		return err
	}
	p.Entries, p.Pager = list, pagerOf(r, "/audit", page, len(list), total)
	return s.show(w, r, v, "audit", "Audit", "/audit", p)
}
