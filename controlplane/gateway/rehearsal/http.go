package rehearsal

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Routes mounts, relative to r, which has let only administrators through:
//
//	POST config/rehearsal                       a document in the body, which is not published; ?last=1h, ?examples=3
//	POST config/versions/{version}/rehearsal    that of a version; the same
func (s *Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Post("/config/rehearsal", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		raw, err := httpapi.ReadJSON(w, r, config.MaxBytes)
		if err != nil {
			return err
		}
		p, err := s.Documents.Propose(r.Context(), raw)
		if err != nil {
			return err
		}
		return s.answer(w, r, p)
	}))
	r.Post("/config/versions/{version}/rehearsal", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		number, err := strconv.ParseInt(chi.URLParam(r, "version"), 10, 64)
		if err != nil || number < 1 {
			return apierror.Invalid([]decision.Detail{{Field: "version", Issue: "is not a version", Expected: "a whole number from 1"}})
		}
		p, err := s.Documents.ProposeVersion(r.Context(), number)
		if err != nil {
			return err
		}
		return s.answer(w, r, p)
	}))
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request, p config.Proposal) error {
	last, examples, err := ParseQuery(r.URL.Query())
	if err != nil {
		return err
	}
	_ = http.NewResponseController(w).SetWriteDeadline(s.Now().Add(maxTime)) // where that cannot be said, the server's holds
	report, err := s.Rehearse(r.Context(), p, last, examples)
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, report)
	return nil
}

// maxTime is how long an answer may take: a minute is enough for MaxRequests on a slow
// machine.
const maxTime = 5 * time.Minute

// defaultExamples is how many there are of a finding.
const defaultExamples = 3

// ParseQuery reads how much is to be tried, and how many examples are wanted; it names
// what is not valid. It takes time linear in q.
func ParseQuery(q url.Values) (last time.Duration, examples int, err error) {
	last, examples = requestlog.RecordsKept, defaultExamples
	var details []decision.Detail
	if text := q.Get("last"); text != "" {
		if last, err = time.ParseDuration(text); err != nil || last < time.Second || last > requestlog.RecordsKept {
			details = append(details, decision.Detail{Field: "last", Issue: "is not valid", Expected: "a time from 1s to 1h, such as 15m"})
		}
	}
	if text := q.Get("examples"); text != "" {
		if examples, err = strconv.Atoi(text); err != nil || examples < 0 || examples > MaxExamples {
			details = append(details, decision.Detail{Field: "examples", Issue: "is not valid", Expected: "a whole number from 0 to 1000"})
		}
	}
	return last, examples, apierror.Invalid(details)
}
