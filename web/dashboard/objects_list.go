package dashboard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// objectsPage are the objects of a kind.
type objectsPage struct {
	Version int64
	Kind    string // of config.Kinds
	One     string // what one of them is called
	Rows    []objectRow
	Plans   bool // they are plans, which can be offered
}

// objectRow is an object in short.
type objectRow struct {
	Name, Link string
	Facts      []string
	Offered    bool // a plan that customers may take by themselves
}

// showObjects lists the products, plans or classes of the newest configuration.
func (s *site) showObjects(w http.ResponseWriter, r *http.Request, v viewer) error {
	kind, err := kindOf(r)
	if err != nil {
		return err
	}
	if kind == "routes" {
		return seeOther(w, r, Root+"/routes")
	}
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	p := objectsPage{Version: now.Number, Kind: kind, One: oneOf[kind], Plans: kind == "plans"}
	d := now.Document
	switch kind {
	case "products":
		for _, one := range d.Products {
			var at []string
			for _, u := range one.Upstreams {
				at = append(at, u.Address)
			}
			p.Rows = append(p.Rows, objectRow{Name: one.Name, Facts: []string{strings.Join(at, ", ")}})
		}
	case "classes":
		for _, one := range d.Classes {
			p.Rows = append(p.Rows, objectRow{Name: one.Name, Facts: []string{number(one.PerMinute) + " requests a minute"}})
		}
	default:
		if err := s.planRows(r, d, &p); err != nil {
			return err
		}
	}
	for i := range p.Rows {
		p.Rows[i].Link = objectLink(kind, p.Rows[i].Name)
	}
	return s.show(w, r, v, "objects", strings.ToUpper(kind[:1])+kind[1:], "/routes", p)
}

// planRows lists the plans, and which of them customers may take.
func (s *site) planRows(r *http.Request, d config.Document, p *objectsPage) error {
	offers, err := billing.Store{DB: s.DB, Now: s.Now}.Plans(r.Context())
	if err != nil {
		return err
	}
	for _, one := range d.Plans {
		row := objectRow{Name: one.Name, Offered: slices.Contains(offers, billing.Plan{Name: one.Name, SelfServe: true})}
		for _, c := range d.Classes {
			if l, ok := one.Limits[c.Name]; ok && l.PerMinute > 0 {
				row.Facts = append(row.Facts, c.Name+": "+number(l.PerMinute)+" a minute")
			}
		}
		if one.Quota != nil && one.Quota.Requests > 0 {
			row.Facts = append(row.Facts, number(one.Quota.Requests)+" requests a month")
		}
		if one.Price != nil && one.Price.Monthly != "" {
			row.Facts = append(row.Facts, one.Price.Monthly+" "+one.Price.Currency+" a month")
		}
		p.Rows = append(p.Rows, row)
	}
	return nil
}

// offerPlan is the form that lets customers take a plan by themselves, or no longer.
func (s *site) offerPlan(w http.ResponseWriter, r *http.Request, _ viewer) error {
	p := billing.Plan{Name: chi.URLParam(r, "name"), SelfServe: r.PostForm.Get("offer") == "yes"}
	if err := (billing.Store{DB: s.DB, Now: s.Now}).SetSelfServe(r.Context(), p); err != nil {
		return err
	}
	return seeOther(w, r, Root+"/routes/plans?done=saved")
}
