package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/decision"
)

// requestsPage is a part of the request log.
type requestsPage struct {
	Now         time.Time
	Query       map[string]string // what was asked for
	Statuses    []statusChoice
	Operator    bool
	Requests    []requestlog.Request
	NotRecorded int64
	Older       string            // link; empty: there is nothing
	Live        string            // where the part is kept up to date; empty: it is not
	Faults      []decision.Detail // of what was asked for
}

// statusChoice is one of the tabs.
type statusChoice struct {
	Name, Label, Link string
	Current           bool
}

// requestFilters are the fields of the form.
var requestFilters = []string{"status", "route", "product", "key", "method", "would_refuse", "of"}

// showRequests shows the last requests: an operator everybody's, others those of
// their account.
func (s *site) showRequests(w http.ResponseWriter, r *http.Request, v viewer) error {
	q := r.URL.Query()
	if id := strings.TrimSpace(q.Get("id")); id != "" {
		a, err := s.chosen(r, v)
		if err != nil {
			return err
		}
		return seeOther(w, r, linkOf("/requests/"+url.PathEscape(cut(id)), v, a))
	}
	page, err := s.requests(r.Context(), look{viewer: v, Query: q})
	if err != nil {
		return err
	}
	return s.show(w, r, v, "requests", "Requests", "/requests", page)
}

// requests reads what the page says for a query.
func (s *site) requests(ctx context.Context, l look) (any, error) {
	v, q := l.viewer, l.Query
	p := requestsPage{Now: s.Now(), Operator: v.Operator, Query: map[string]string{}}
	asked := url.Values{}
	for _, name := range requestFilters {
		value := cut(q.Get(name))
		p.Query[name] = value
		if value != "" && (name != "of" || v.Operator) {
			asked.Set(name, value)
		}
	}
	p.Statuses = statusChoices(asked)
	if q.Get("cursor") == "" {
		p.Live = Root + "/live/requests?" + asked.Encode()
	}
	f, err := requestlog.ParseFilter(url.Values{"status": asked["status"], "route": asked["route"], "product": asked["product"], "key": asked["key"],
		"method": asked["method"], "would_refuse": asked["would_refuse"], "cursor": {q.Get("cursor")}})
	if faults := detailsOf(err); faults != nil {
		p.Faults, p.Live = faults, ""
		return p, nil
	}
	f.Account = v.Account.ID
	if v.Operator {
		f.Account = p.Query["of"]
	}
	list, err := s.Requests.List(ctx, f)
	if err != nil {
		return nil, err
	}
	p.Requests, p.NotRecorded = list.Data, list.Dropped
	if list.Next != nil {
		asked.Set("cursor", list.Next.String())
		p.Older = Root + "/requests?" + asked.Encode()
	}
	return p, nil
}

// wouldRefuse is the filter for requests that passed in the shadow of what would have
// refused them.
const wouldRefuse = "would_refuse"

// statusChoices lead to the same list with another status.
func statusChoices(asked url.Values) []statusChoice {
	choices := []statusChoice{{Label: "all"}, {Name: "failed"}, {Name: "5xx"}, {Name: "4xx"}, {Name: "429"}, {Name: "2xx"}, {Name: wouldRefuse, Label: "would be refused"}}
	for i := range choices {
		q := url.Values{}
		for name, values := range asked {
			if name != "status" && name != wouldRefuse {
				q[name] = values
			}
		}
		c := &choices[i]
		switch c.Name {
		case "":
		case wouldRefuse:
			q.Set(wouldRefuse, requestlog.AnyWould)
		default:
			q.Set("status", c.Name)
		}
		c.Label = cmp.Or(c.Label, c.Name)
		c.Current = c.Name == asked.Get("status") && !asked.Has(wouldRefuse) || c.Name == wouldRefuse && asked.Has(wouldRefuse)
		c.Link = Root + "/requests?" + q.Encode()
	}
	return choices
}

// requestPage is about one request.
type requestPage struct {
	Now     time.Time
	Request requestlog.Request
	Steps   []requestlog.Step
}

// showRequest shows what happened to one.
func (s *site) showRequest(w http.ResponseWriter, r *http.Request, v viewer) error {
	account := v.Account.ID
	if v.Operator {
		account = ""
	}
	one, err := s.Requests.Get(r.Context(), account, cut(chi.URLParam(r, "id")))
	if err != nil {
		return err
	}
	return s.show(w, r, v, "request", "Request "+one.ID, "/requests", requestPage{s.Now(), one, one.Steps()})
}

// statusTone is how a status looks.
func statusTone(status int) string {
	switch {
	case status == 0, status >= 500:
		return "bad"
	case status >= 400:
		return "busy"
	}
	return "good"
}

// micros writes microseconds as people read times.
func micros(us int64) string {
	if us < 1000 {
		return fmt.Sprintf("%d µs", us)
	}
	return millis(float64(us) / 1000)
}

// inPercent is where a part begins in a drawing that is 100 wide, and width how much
// of it a step takes, which is always to be seen.
func inPercent(part float64) float64 { return min(99.5, 100*part) }

func width(from, to float64) float64 { return max(0.5, 100*(to-from)) }
