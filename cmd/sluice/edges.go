package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/internal/app"
)

// exitNotEverywhere is the exit status of `apply --wait` when the version is in
// force, but some live edge does not hold it.
const exitNotEverywhere exitStatus = 3

// pollInterval is how often `apply --wait` asks for the edges.
const pollInterval = 100 * time.Millisecond

// edgesCommand shows the edges, whichever replica answers.
func edgesCommand(env app.Environment) *cobra.Command {
	return call{
		use: "edges", short: "show each edge: its expected and actual version, errors, and how current its keys are", path: "/admin/v1/edges",
		show: func(w io.Writer, answer []byte) error {
			var v edgestatus.View
			if err := json.Unmarshal(answer, &v); err != nil {
				return fmt.Errorf("the answer is not a list of edges: %w", err)
			}
			return showEdges(w, v)
		},
	}.command(env)
}

// showEdges writes a line for each edge, and one for each refusal.
func showEdges(w io.Writer, v edgestatus.View) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "EDGE\tSTATE\tWANTED\tHELD\tLAG\tKEYS BEHIND\tLIMITS\tGATEWAY\tENVOY\tBUILD\tUP\tLAST SEEN")
	for _, e := range v.Data {
		behind, limits, build, up := "-", "-", "-", "-"
		if e.Report != nil {
			behind, limits, build, up = fmt.Sprint(e.Feed.Behind), limitsOf(e.Report), e.Report.Build, seconds(e.Report.Uptime)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.ID, stateOf(e), e.Wanted, e.Held, seconds(e.Lag), behind, limits,
			e.GatewayAddr, e.Build, build, up, e.LastSeen.UTC().Format(time.RFC3339))
	}
	for _, e := range v.Data {
		for _, r := range e.Refusals {
			fmt.Fprintf(t, "%s refuses %s\n", e.ID, r)
		}
		if e.Report != nil && len(e.Report.Outdated) > 0 {
			fmt.Fprintf(t, "%s runs another %s than is there now: send its agent a SIGHUP\n", e.ID, strings.Join(e.Report.Outdated, ", "))
		}
	}
	return t.Flush()
}

// stateOf is one word on an edge.
func stateOf(e edgestatus.Edge) string {
	switch {
	case !e.Live:
		return "gone"
	case len(e.Refusals) > 0:
		return "refuses"
	case e.Report != nil && e.Report.State != "live":
		return e.Report.State
	case !e.Connected:
		return "moving"
	case !e.Current:
		return "behind"
	default:
		return "current"
	}
}

// limitsOf says how an edge limits: with the others, by a share while it is cut
// off from them, with when it last heard of them, or alone.
func limitsOf(r *edgestatus.Report) string {
	switch r.Limits {
	case "shared":
		return fmt.Sprintf("of all %d", r.LimitsEdges)
	case "share":
		if r.LimitsAge < 0 {
			return fmt.Sprintf("share of 1/%d", r.LimitsEdges)
		}
		return fmt.Sprintf("share of 1/%d for %s", r.LimitsEdges, seconds(r.LimitsAge))
	case "alone":
		return "alone"
	}
	return "-" // an agent of before
}

// seconds shows a time in seconds, whole ones from ten on.
func seconds(s float64) string {
	d := max(0, time.Duration(s*float64(time.Second)))
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// edgesWithout returns a line for each live edge that does not hold a version, and
// whether all of them have refused it, so that waiting longer is in vain.
func edgesWithout(v edgestatus.View, version int64) (lines []string, allRefused bool) {
	allRefused = true
	for _, e := range v.Data {
		if !e.Live || e.Held >= version {
			continue
		}
		line := fmt.Sprintf("%s holds version %d", e.ID, e.Held)
		switch {
		case len(e.Refusals) > 0 && e.Published >= version:
			line += " and refuses " + strings.Join(e.Refusals, "; ")
		case !e.Connected:
			line, allRefused = line+" and is connected to no replica", false
		default:
			line, allRefused = line+" and has not answered", false
		}
		lines = append(lines, line)
	}
	return lines, allRefused
}

// waitForEdges returns when every live edge holds a version. Else it says on w
// which do not, and why, once the time is over or all of those have refused.
// While no replica answers it asks again: another one may.
func waitForEdges(ctx context.Context, api client, version int64, timeout time.Duration, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	lines, failure := []string(nil), errors.New("the time was too short to ask")
	for {
		v, err := readEdges(ctx, api)
		allRefused := false
		if err == nil || ctx.Err() == nil {
			failure = err
		}
		if err == nil {
			lines, allRefused = edgesWithout(v, version)
		}
		switch {
		case ctx.Err() != nil && failure != nil:
			return fmt.Errorf("version %d is in force; whether edges hold it is not known: %w", version, failure)
		case err == nil && len(lines) == 0:
			_, err := fmt.Fprintf(w, "every live edge holds version %d\n", version)
			return err
		case ctx.Err() != nil || allRefused:
			fmt.Fprintf(w, "version %d is not everywhere:\n%s\n", version, strings.Join(lines, "\n"))
			return exitNotEverywhere
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func readEdges(ctx context.Context, api client) (v edgestatus.View, err error) {
	answer, err := api.do(ctx, http.MethodGet, "/admin/v1/edges", nil)
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(answer, &v)
}
