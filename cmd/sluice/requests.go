package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/cmd/sluice/output"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/internal/app"
	"sluice.dev/sluice/platform/process/pause"
)

const (
	followEvery = time.Second
	// followOverlap is how much is read again each time: edges do not all send at once.
	followOverlap = 10 * time.Second
	// followPages bounds what is read at a time; beyond 500 requests a second some are
	// left out.
	followPages = 5
)

// requestsCommand is `sluice requests`.
func requestsCommand(env app.Environment) *cobra.Command {
	var follow bool
	var limit int
	filters := map[string]*string{}
	c := &cobra.Command{
		Use: "requests", Aliases: []string{"logs"}, Short: "list failed requests and a sample of the others of the last day, newest first", Args: cobra.NoArgs,
		Example: "  sluice requests --status 5xx --route orders.create\n  sluice requests --account acct_… --follow\n  sluice requests --would-refuse --route clips.create",
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := newClient(env)
			if err != nil {
				return err
			}
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			if account, _ := c.Flags().GetString("account"); account != "" {
				q.Set("account", account)
			}
			for name, value := range filters {
				if *value != "" {
					q.Set(name, *value)
				}
			}
			if since := q.Get("since"); since != "" {
				if d, err := time.ParseDuration(since); err == nil {
					q.Set("since", time.Now().Add(-d).UTC().Format(time.RFC3339))
				}
			}
			if follow {
				return followRequests(c.Context(), api, q, printing(c))
			}
			return listRequests(c.Context(), api, q, printing(c))
		},
	}
	for name, help := range map[string]string{
		"status": "a class (5xx), a status (429), or failed: 400 and above", "route": "name of a route", "product": "name of a product",
		"key": "id of a key", "method": "method, such as POST", "since": "a time (RFC 3339), or how long ago (15m)",
	} {
		filters[name] = c.Flags().String(name, "", help)
	}
	filters["would_refuse"] = c.Flags().String("would-refuse", "", "only those that passed in the shadow of what would have refused them: with any code, or with =CODE")
	c.Flags().Lookup("would-refuse").NoOptDefVal = requestlog.AnyWould
	c.Flags().BoolVarP(&follow, "follow", "f", false, "print requests as they are recorded, until interrupted")
	c.Flags().IntVar(&limit, "limit", 50, "number to list, at most 100")
	return c
}

// requestPage is what the admin API answers.
type requestPage struct {
	Data       []requestlog.Request `json:"data"`
	Pagination struct {
		HasMore bool    `json:"has_more"`
		Next    *string `json:"next_cursor"`
	} `json:"pagination"`
	NotRecorded int64 `json:"not_recorded"`
}

func readRequests(ctx context.Context, api client, q url.Values) (p requestPage, answer []byte, err error) {
	answer, err = api.do(ctx, http.MethodGet, "/admin/v1/requests?"+q.Encode(), nil)
	if err == nil {
		err = json.Unmarshal(answer, &p)
	}
	return p, answer, err
}

// listRequests prints one page; a page that found nothing yet goes on with the next.
func listRequests(ctx context.Context, api client, q url.Values, out output.Printer) error {
	p, answer, err := readRequests(ctx, api, q)
	for n := 1; err == nil && len(p.Data) == 0 && p.Pagination.Next != nil && n < 100; n++ {
		q.Set("cursor", *p.Pagination.Next)
		p, answer, err = readRequests(ctx, api, q)
	}
	if err != nil {
		return err
	}
	if out.Quiet {
		for _, r := range p.Data {
			if _, err := fmt.Fprintln(out.Out, r.ID); err != nil {
				return err
			}
		}
		return nil
	}
	if !out.Text() {
		return out.Document(answer)
	}
	t := tabwriter.NewWriter(out.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TIME\tSTATUS\tMETHOD\tPATH\tROUTE\tACCOUNT\tMS\tCODE\tID")
	for _, r := range p.Data {
		fmt.Fprintf(t, "%s\n", strings.Join(requestCells(r), "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if p.NotRecorded > 0 {
		_, err = fmt.Fprintf(out.Out, "%d more failed in the last day and were not recorded: there were too many at a time\n", p.NotRecorded)
	}
	return err
}

// followRequests prints requests as they come, oldest first, until ctx ends.
func followRequests(ctx context.Context, api client, q url.Values, out output.Printer) error {
	seen := map[string]time.Time{} // by id, when they ended
	from := time.Now().Add(-followOverlap)
	if q.Get("since") == "" {
		q.Set("since", from.UTC().Format(time.RFC3339))
	}
	q.Set("limit", "100")
	for first := true; ; first = false {
		fresh, err := newRequests(ctx, api, q, seen)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && first {
			return err
		}
		for _, r := range fresh {
			if r.EndedAt.After(from) {
				from = r.EndedAt
			}
			if err := printRequest(out, r); err != nil {
				return err
			}
		}
		since := from.Add(-followOverlap)
		q.Set("since", since.UTC().Format(time.RFC3339Nano))
		maps.DeleteFunc(seen, func(_ string, ended time.Time) bool { return ended.Before(since) })
		if !pause.For(ctx, followEvery) {
			return nil
		}
	}
}

// newRequests reads those that are not in seen, oldest first, and adds them to it.
func newRequests(ctx context.Context, api client, q url.Values, seen map[string]time.Time) (fresh []requestlog.Request, err error) {
	q.Del("cursor")
	for range followPages {
		p, _, err := readRequests(ctx, api, q)
		if err != nil {
			return nil, err
		}
		for _, r := range p.Data {
			if _, known := seen[r.ID]; !known {
				seen[r.ID] = r.EndedAt
				fresh = append(fresh, r)
			}
		}
		if p.Pagination.Next == nil {
			break
		}
		q.Set("cursor", *p.Pagination.Next)
	}
	slices.SortStableFunc(fresh, func(a, b requestlog.Request) int { return a.EndedAt.Compare(b.EndedAt) })
	return fresh, nil
}

// printRequest writes one line; as YAML, a document.
func printRequest(out output.Printer, r requestlog.Request) error {
	switch {
	case out.Quiet:
		_, err := fmt.Fprintln(out.Out, r.ID)
		return err
	case out.Format == "json":
		return json.NewEncoder(out.Out).Encode(r)
	case out.Format == "yaml":
		raw, err := json.Marshal(r)
		if err == nil {
			_, err = fmt.Fprintln(out.Out, "---")
		}
		if err != nil {
			return err
		}
		return output.YAML(out.Out, raw)
	}
	_, err := fmt.Fprintln(out.Out, strings.Join(requestCells(r), "  "))
	return err
}

// requestCells are a request in a table.
func requestCells(r requestlog.Request) []string {
	path := cmp.Or(r.Path, r.PathTemplate, "-")
	if len(path) > 60 {
		path = path[:57] + "…"
	}
	return []string{r.Time.UTC().Format("15:04:05.000"), statusText(r.Status), cmp.Or(r.Method, "-"), path, cmp.Or(r.Route, "-"), cmp.Or(r.Account, "-"),
		fmt.Sprintf("%.1f", float64(r.Timings.Total)/1000), cmp.Or(r.Code, wouldText(r), "-"), r.ID}
}

// wouldText is what would have refused a request that passed.
func wouldText(r requestlog.Request) string {
	if r.WouldRefuse == "" {
		return ""
	}
	return "would:" + r.WouldRefuse
}

// statusText is a status, or that there was none.
func statusText(status int) string {
	if status == 0 {
		return "-"
	}
	return strconv.Itoa(status)
}
