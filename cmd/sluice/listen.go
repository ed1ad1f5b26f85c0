package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/cmd/sluice/listen"
	"sluice.dev/sluice/cmd/sluice/output"
	"sluice.dev/sluice/internal/app"
	"sluice.dev/sluice/workers/webhooks"
)

// listenCommand is `sluice listen`.
func listenCommand(env app.Environment) *cobra.Command {
	var to, webhook, secret string
	var events []string
	c := &cobra.Command{
		Use: "listen", Short: "receive webhooks on this machine, signed as real deliveries", Args: cobra.NoArgs,
		Long: "Waits for events of the account, shows them, and with --forward-to sends each to a program on this machine, with the body, headers and\n" +
			"signatures of a delivery. No public address is needed, and deliveries to subscriptions stay as they are. When the connection breaks it goes on\n" +
			"where it was. Signed with --webhook is what comes with that subscription's secret; else with a secret that is shown at the start.",
		Example: "  sluice listen --forward-to http://localhost:3000/hooks\n  sluice listen --forward-to 3000 --events 'stream.*'\n  sluice trigger stream.started    # in another terminal",
		RunE: func(c *cobra.Command, _ []string) error {
			address, err := listen.Address(to)
			if err != nil {
				return err
			}
			api, err := call{gateway: true}.client(env, c.Flag("account").Value.String())
			if err != nil {
				return err
			}
			secret := cmp.Or(secret, listen.Secret(api.key))
			out := printing(c)
			said := c.ErrOrStderr()
			return listen.Run(c.Context(), listen.Config{
				Next: func(ctx context.Context, cursor string) (webhooks.Listened, error) {
					return api.listen(ctx, url.Values{"cursor": {cursor}, "webhook": {webhook}, "events": {strings.Join(events, ",")}})
				},
				Final: func(err error) bool {
					r, ok := errors.AsType[refused](err)
					return ok && r.status/100 == 4 && r.status != http.StatusTooManyRequests
				},
				To: address, Secret: []byte(secret),
				Ready: func() {
					fmt.Fprintln(said, "ready: waiting for events; Ctrl-C ends it")
					if webhook == "" && address != "" {
						fmt.Fprintln(said, "signing secret:", secret)
					}
				},
				Lost:  func(err error) { fmt.Fprintf(said, "the gateway does not answer, trying again: %v\n", err) },
				Heard: func(r listen.Result) { showHeard(out, r) },
			})
		},
	}
	f := c.Flags()
	f.StringVar(&to, "forward-to", "", "address that events are sent to, such as http://localhost:3000/hooks, or a port of this machine")
	f.StringSliceVar(&events, "events", nil, "events, groups such as stream.*, or *; may be repeated, or separated by commas (default: those of --webhook, or all)")
	f.StringVar(&webhook, "webhook", "", "id of a subscription: its events, signed with its secret")
	f.StringVar(&secret, "secret", "", "secret that signs, without --webhook (default: one of the API key's own, which is shown)")
	c.MarkFlagsMutuallyExclusive("webhook", "secret")
	cobra.CheckErr(c.RegisterFlagCompletionFunc("events", eventNames.complete(env, true)))
	cobra.CheckErr(c.RegisterFlagCompletionFunc("webhook", listed{"/v1/webhooks?limit=100", "id"}.complete(env, true)))
	return c
}

// listen asks once for events.
func (c client) listen(ctx context.Context, q url.Values) (page webhooks.Listened, err error) {
	for name := range q {
		if q.Get(name) == "" {
			q.Del(name)
		}
	}
	answer, err := c.do(ctx, http.MethodGet, "/v1/webhooks/listen?"+q.Encode(), nil)
	if err == nil {
		err = json.Unmarshal(answer, &page)
	}
	return page, err
}

// showHeard writes a line for an event: what it was, and what the receiver answered.
func showHeard(out output.Printer, r listen.Result) {
	switch {
	case out.Quiet:
		fmt.Fprintln(out.Out, r.ID)
		return
	case !out.Text():
		fmt.Fprintln(out.Out, r.Body) // one JSON object a line
		return
	}
	line := r.Event + "  " + r.ID
	if out.Terminal {
		line = time.Now().Format(time.TimeOnly) + "  " + line
	}
	switch {
	case r.Failure != nil:
		line += "  " + r.Failure.Error()
	case r.Sent:
		line += fmt.Sprintf("  %d %s", r.Status, http.StatusText(r.Status))
	}
	if r.Late() {
		line += fmt.Sprintf("  (%s: a real delivery fails after 5s)", r.Took.Round(time.Second/10))
	}
	fmt.Fprintln(out.Out, line)
}

// triggerCommand is `sluice trigger`.
func triggerCommand(env app.Environment) *cobra.Command {
	return call{
		use: "trigger EVENT", short: "try an event on `sluice listen` and the account's webhooks", args: cobra.ExactArgs(1), gateway: true, method: http.MethodPost, path: "/v1/webhooks/trigger",
		example: "  sluice trigger stream.started --data '{\"stream_id\": \"strm_…\"}'\n  sluice trigger webhook.disabled --data '{\"reason\": \"gone\"}'",
		flags:   []option{text("data", "", "JSON object whose fields go over those of the event's example")},
		edit: func(c *cobra.Command, args []string, r *request) error {
			r.body["event"] = args[0]
			if given, _ := c.Flags().GetString("data"); given != "" {
				var data map[string]any
				if json.Unmarshal([]byte(given), &data) != nil || data == nil {
					return usageError{c, "--data is no JSON object"}
				}
				r.body["data"] = data
			}
			return nil
		},
		one: []string{"id", "event", "deliveries"}, complete: eventNames.first(env, true),
	}.command(env)
}
