package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/internal/app"
)

// requestCommand is `sluice request`.
func requestCommand(env app.Environment) *cobra.Command {
	return call{
		use: "request ID", short: "show what happened to a request, by its X-Request-ID", args: cobra.ExactArgs(1), path: "/admin/v1/requests/{0}",
		show: func(w io.Writer, answer []byte) error {
			var r requestlog.Request
			if err := json.Unmarshal(answer, &r); err != nil {
				return fmt.Errorf("the answer is not a request: %w", err)
			}
			return showRequest(w, r)
		},
	}.command(env)
}

// showRequest writes all that is known of a request.
func showRequest(w io.Writer, r requestlog.Request) error {
	fmt.Fprintf(w, "%s %s %s\n%s\n", statusText(r.Status), r.Method, cmp.Or(r.Path, r.PathTemplate), r.Explanation)
	if r.DocumentationURL != "" {
		fmt.Fprintln(w, r.DocumentationURL)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range [][2]string{
		{"id", r.ID}, {"time", r.Time.UTC().Format("2006-01-02T15:04:05.000Z")}, {"edge", r.Edge}, {"host", r.Host}, {"protocol", r.Protocol}, {"grpc status", grpcText(r)},
		{"route", r.Route}, {"path template", r.PathTemplate}, {"class", r.Class}, {"product", r.Product}, {"upstream", upstreamText(r)},
		{"account", r.Account}, {"credential", r.Key}, {"plan", r.Plan}, {"scopes", strings.Join(r.Scopes, ",")}, {"code", r.Code}, {"reason", r.Reason},
		{"would refuse", r.WouldRefuse}, {"would-be reason", r.WouldReason},
		{"response flags", r.Flags}, {"response detail", r.Detail}, {"failure", r.Failure}, {"client", r.Client}, {"user agent", r.UserAgent},
		{"bytes in", strconv.FormatInt(r.BytesIn, 10)}, {"bytes out", strconv.FormatInt(r.BytesOut, 10)}, {"trace", r.TraceID},
	} {
		if f[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", f[0], f[1])
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return drawTimings(w, r.Steps())
}

// grpcText is the status of a call by gRPC, "" of another request.
func grpcText(r requestlog.Request) string {
	if r.GRPC == nil {
		return ""
	}
	return decision.GRPCName(*r.GRPC)
}

// upstreamText is the upstream's address, with how often it was tried.
func upstreamText(r requestlog.Request) string {
	if r.Attempts > 1 {
		return fmt.Sprintf("%s, attempt %d", r.Upstream, r.Attempts)
	}
	return r.Upstream
}

// drawTimings draws what took how long, each after the one before.
func drawTimings(w io.Writer, steps []requestlog.Step) error {
	const width = 50
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range steps {
		from, to := int(s.FromPart*width), int(s.ToPart*width+0.5)
		bar := strings.Repeat(" ", from) + strings.Repeat("█", max(1, to-from))
		fmt.Fprintf(t, "%s\t%.3f ms\t|%-*s|\n", s.Name, float64(s.Took)/1000, width+1, bar)
	}
	return t.Flush()
}
