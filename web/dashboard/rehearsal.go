package dashboard

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/rehearsal"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
)

// rehearsalPage is what a version would have done to the requests of the last hour.
type rehearsalPage struct {
	Number int64
	rehearsal.Report
	Parts []rehearsedPart // without those of no requests
}

// rehearsedPart is a part of a report with its heading.
type rehearsedPart struct {
	Name, Heading string
	rehearsal.Part
}

// examplesShown is how many requests of a finding a page links to.
const examplesShown = 3

// rehearse is the form that tries an old version on recorded requests. It changes nothing.
func (s *site) rehearse(w http.ResponseWriter, r *http.Request, v viewer) error {
	number, err := strconv.ParseInt(chi.URLParam(r, "version"), 10, 64)
	if err != nil {
		return s.notFound(w, r)
	}
	proposal, err := s.Documents.ProposeVersion(r.Context(), number)
	if err != nil {
		return err
	}
	report, err := s.Rehearse.Rehearse(r.Context(), proposal, requestlog.RecordsKept, examplesShown)
	if err != nil {
		return err
	}
	return s.show(w, r, v, "rehearsal", "Rehearsal of version "+strconv.FormatInt(number, 10), "/config", rehearsalPage{number, report, partsOf(report)})
}

// partsOf are the parts of a report that have requests.
func partsOf(report rehearsal.Report) (list []rehearsedPart) {
	for _, part := range []rehearsedPart{
		{"refused", "Would now be refused", report.Refused}, {"allowed", "Would no longer be refused", report.Allowed}, {"moved", "Would go elsewhere", report.Moved},
		{"otherwise", "Would be refused for another reason", report.Otherwise}, {"undetermined", "Cannot be foreseen", report.Undetermined},
	} {
		if part.Requests > 0 {
			list = append(list, part)
		}
	}
	return list
}
