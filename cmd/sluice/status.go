package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/status"
	"sluice.dev/sluice/internal/app"
)

// statusCommand shows on one screen whether all is well: exit status 0 if it is,
// else 1.
func statusCommand(env app.Environment) *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "show whether everything works, and what to do if not (exit status 1)", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := get(c.Context(), env, "/admin/v1/status")
			if err != nil {
				return err
			}
			var r status.Report
			if err := json.Unmarshal(answer, &r); err != nil {
				return fmt.Errorf("the answer is not a status: %w", err)
			}
			show := func() error { return showStatus(c.OutOrStdout(), r) }
			if out := printing(c); !out.Text() {
				show = func() error { return out.Document(answer) }
			}
			if err := show(); err != nil {
				return err
			}
			if r.Status != status.OK {
				return exitStatus(1)
			}
			return nil
		},
	}
	return c
}

// showStatus writes a line for each part, and below them what is wrong.
func showStatus(w io.Writer, r status.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, part := range []struct{ name, text string }{
		{"database", databaseLine(r.Database)},
		{"processes", processesLine(r.Processes)},
		{"edges", edgesLine(r)},
		{"queues", queuesLine(r.Queues)},
		{"schedules", fmt.Sprintf("%d active, %d late", r.Schedules.Active, r.Schedules.Late)},
		{"webhooks", webhooksLine(r.Webhooks)},
		{"usage", usageLine(r)},
	} {
		state := "ok"
		if slices.ContainsFunc(r.Problems, func(p status.Problem) bool { return p.Part == part.name }) {
			state = "LOOK"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", part.name, state, part.text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range r.Problems {
		if _, err := fmt.Fprintf(w, "\n%s: %s\n  %s\n", p.Part, p.What, p.Action); err != nil {
			return err
		}
	}
	return nil
}

func databaseLine(d status.Database) string {
	return fmt.Sprintf("PostgreSQL %s, %.1f ms, %d MB, %d of %d connections, schema %d", d.Version, d.LatencyMS, d.Bytes>>20, d.Connections, d.ConnectionsMax, d.Schema)
}

// processesLine counts what runs by kind, and names the builds.
func processesLine(list []status.Process) string {
	var kinds, builds []string
	count := map[string]int{}
	for _, p := range list {
		if !p.Live {
			continue
		}
		if count[p.Kind]++; count[p.Kind] == 1 {
			kinds = append(kinds, p.Kind)
		}
		if !slices.Contains(builds, p.Build) {
			builds = append(builds, p.Build)
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", count[kind], kind)
	}
	if len(kinds) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (build %s)", strings.Join(kinds, ", "), strings.Join(builds, " and "))
}

func edgesLine(r status.Report) string {
	live, current, behind := 0, 0, int64(0)
	for _, e := range r.Edges.Data {
		if !e.Live {
			continue
		}
		live++
		if e.Current {
			current++
		}
		if e.Feed != nil {
			behind = max(behind, e.Feed.Behind)
		}
	}
	return fmt.Sprintf("%d live, %d of them hold version %d, keys at most %d changes behind", live, current, r.Edges.Version, behind)
}

func queuesLine(list []status.Queue) string {
	if len(list) == 0 {
		return "no job waits"
	}
	parts := make([]string, len(list))
	for i, q := range list {
		parts[i] = fmt.Sprintf("%s %d (%s)", q.Name, q.Waiting, seconds(q.Oldest))
	}
	return "waiting: " + strings.Join(parts, ", ")
}

func webhooksLine(w status.Webhooks) string {
	failed := "too many to count"
	if w.Failed != nil {
		failed = fmt.Sprint(*w.Failed)
	}
	return fmt.Sprintf("%d endpoints, %d failing, %d disabled; %s deliveries given up in the last hour", w.Endpoints, w.Failing, w.Disabled, failed)
}

func usageLine(r status.Report) string {
	last := "no edge has sent any"
	if at := r.Usage.LastParcel; at != nil {
		last = "last from an edge " + seconds(r.Time.Sub(*at).Seconds()) + " ago"
	}
	return last + ", summed up to " + r.Usage.SummedTo.UTC().Format(time.RFC3339)
}
