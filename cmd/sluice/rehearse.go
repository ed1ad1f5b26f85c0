package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice.dev/sluice/cmd/sluice/output"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/rehearsal"
)

// rehearseTimeout bounds a rehearsal: two million requests take up to a minute.
const rehearseTimeout = 5 * time.Minute

// rehearse has the control plane try d on the requests of the last while, shows what it
// would do to them, and returns exit status 2 if any would be refused.
func (c client) rehearse(ctx context.Context, d config.Document, last time.Duration, out output.Printer) error {
	c.http = &http.Client{Timeout: rehearseTimeout}
	answer, err := c.do(ctx, http.MethodPost, "/admin/v1/config/rehearsal?"+url.Values{"last": {last.String()}}.Encode(), d)
	if err != nil {
		return err
	}
	var r rehearsal.Report
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("the answer is not what was expected: %w", err)
	}
	if out.Text() {
		err = showRehearsal(out.Out, r)
	} else {
		err = out.Document(answer)
	}
	if err == nil && r.Refused.Requests > 0 {
		return exitStatus(2)
	}
	return err
}

// showRehearsal writes a report for people.
func showRehearsal(w io.Writer, r rehearsal.Report) error {
	b := &strings.Builder{}
	if r.Record.Requests == 0 {
		fmt.Fprintf(b, "no request was recorded since %s: there is nothing to try the document on\n", clock(r.Record.Since))
	} else {
		fmt.Fprintf(b, "%d changes to version %d, tried on %s\n", len(r.Changes), r.Version, recordText(r.Record))
	}
	for _, p := range []struct {
		part rehearsal.Part
		what string
	}{
		{r.Refused, "would now be refused"}, {r.Allowed, "would no longer be refused"}, {r.Moved, "would go elsewhere"},
		{r.Otherwise, "would be refused for another reason"}, {r.Undetermined, "cannot be foreseen"},
	} {
		showPart(b, p.part, p.what)
	}
	if r.Record.Requests > 0 && r.Refused.Requests+r.Allowed.Requests+r.Moved.Requests+r.Otherwise.Requests+r.Undetermined.Requests == 0 {
		fmt.Fprintln(b, "nothing would become of any of them that does not become of it now")
	}
	showBites(b, r)
	for _, note := range r.Notes {
		fmt.Fprintln(b, "note: "+note)
	}
	fmt.Fprintln(b, "nothing was published")
	_, err := io.WriteString(w, b.String())
	return err
}

// recordText says what was tried, and how complete that is.
func recordText(r rehearsal.Record) string {
	edges := "at 1 edge"
	if r.Edges != 1 {
		edges = fmt.Sprintf("at %d edges", r.Edges)
	}
	text := fmt.Sprintf("all of %d requests since %s, %s", r.Requests, clock(r.Since), edges)
	if !r.Complete {
		text = fmt.Sprintf("%d requests since %s, %s, recorded of about %d (1 of %.1f): counts are estimates", r.Recorded, clock(r.Since), edges, r.Requests, float64(r.Requests)/float64(max(1, r.Recorded)))
	}
	if r.Lost > 0 {
		text += fmt.Sprintf("; the records of %d more were lost", r.Lost)
	}
	return text + fmt.Sprintf("\ntried the same way, the version in force does what it did to %.2f %% of them", 100*float64(r.Agreeing)/float64(max(1, r.Recorded)))
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

func showPart(b *strings.Builder, p rehearsal.Part, what string) {
	if p.Requests == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s of %s %s:\n", count(p.Requests, "request"), count(p.Accounts, "account"), what)
	for _, f := range p.Findings {
		fmt.Fprintf(b, "  %6d  %s %s  %s", f.Requests, f.Method, f.Path, f.Reason)
		if f.Code != "" {
			fmt.Fprintf(b, " (%s)", f.Code)
		}
		fmt.Fprintf(b, "  route %s", f.Route)
		if f.Was != "" {
			fmt.Fprintf(b, ", now %s", f.Was)
		}
		fmt.Fprintln(b)
		for _, a := range f.Accounts {
			fmt.Fprintf(b, "          %s %d", a.Account, a.Requests)
			for i, c := range a.Credentials {
				fmt.Fprintf(b, "%s%s %d", map[bool]string{true: ": ", false: ", "}[i == 0], c.ID, c.Requests)
			}
			fmt.Fprintln(b)
		}
		if f.MoreAccounts > 0 {
			fmt.Fprintf(b, "          and %d more accounts\n", f.MoreAccounts)
		}
		var ids []string
		for _, e := range f.Examples {
			if e.ID != "" {
				ids = append(ids, e.ID)
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(b, "          such as %s\n", strings.Join(ids, ", "))
		}
	}
	if p.More > 0 {
		fmt.Fprintf(b, "  and %d more kinds\n", p.More)
	}
}

func showBites(b *strings.Builder, r rehearsal.Report) {
	if len(r.Limits) == 0 {
		return
	}
	fmt.Fprintln(b, "\nlimits that would refuse what passes now, by minute:")
	for _, x := range r.Limits {
		who := x.Account
		if x.Key != "" {
			who += " " + x.Key
		}
		if who == "" {
			who = "an address without a credential"
		}
		fmt.Fprintf(b, "  %s  %s  %s, %d a minute: %d refused\n", clock(x.Minute), who, x.Limit, x.PerMinute, x.Refused)
	}
	if r.MoreLimits > 0 {
		fmt.Fprintf(b, "  and %d more\n", r.MoreLimits)
	}
}
