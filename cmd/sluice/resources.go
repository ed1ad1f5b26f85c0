package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
)

// eventNames are the events that there are.
var eventNames = listed{"/v1/webhooks/event-types", "name"}

// resources are the things of an account, and what operators keep.
func resources() []resource {
	deliveries := []string{"id", "event", "status", "attempts", "created_at", "next_attempt_at", "finished_at"}
	schedule := []option{
		text("name", "name", "name of the schedule"), text("type", "type", "what it does", "stream_start", "webhook", "custom"), text("description", "description", "description"),
		text("cron", "schedule.cron", "cron expression, for one that runs again and again; `sluice cron next` shows when"), text("timezone", "schedule.timezone", "IANA time zone (default: UTC)"),
		text("at", "schedule.executeAt", "time at which it runs once, RFC 3339"),
		text("stream", "action.streamId", "id of the stream that it acts on"), text("action", "action.action", "what it does with the stream", "start", "stop", "pause", "resume"),
		text("url", "webhook.url", "address that it calls"), many("tag", "tags", "tag"),
		text("catch-up", "catchUpPolicy", "what becomes of missed runs", "skip", "last", "all"), text("overlap", "overlapPolicy", "what becomes of a run while one is under way", "skip", "queue", "allow"),
	}
	webhook := []option{
		text("url", "url", "HTTPS address that is called"),
		{name: "event", fallback: []string(nil), help: "event, group such as stream.*, or *; may be repeated, or separated by commas", field: "events", given: true, from: eventNames},
		text("description", "description", "description"), number("max-concurrency", "max_concurrency", "requests at a time from one worker"),
		number("rate-per-second", "rate_per_second", "requests a second, from all workers together"), yes("ordered", "ordered", "events of one stream come in order"),
	}
	stream := []option{text("title", "title", "title"), text("playback-policy", "playback_policy", "who may watch, such as public"),
		number("viewer-threshold", "viewer_threshold", "number of viewers that makes an event")}
	status := func(use, short, value string) call {
		return call{use: use + " ID", short: short, method: http.MethodPatch, fixed: map[string]any{"status": value}}
	}
	at := func(path string, calls ...call) []call {
		for i := range calls {
			if calls[i].path == "" {
				calls[i].path = path + "/{0}"
			}
		}
		return calls
	}
	act := func(action string) call {
		return call{use: action + " ID", short: action + " a stream", method: http.MethodPost, path: "/v1/streams/{0}/actions", fixed: map[string]any{"action": action},
			one: []string{"stream_id", "action", "status", "changed", "message"}}
	}
	role := []string{"owner", "admin", "member"}
	return []resource{
		{
			use: "webhook", name: "subscription to events", plural: "subscriptions to events, and their deliveries", gateway: true, path: "/v1/webhooks",
			list: []string{"id", "url", "events", "status", "failing_since"}, wide: []string{"description", "created_at"}, one: []string{"disabled_reason", "max_concurrency", "rate_per_second", "ordered"},
			create: append(webhook[:len(webhook):len(webhook)], text("secret", "secret", "secret that signs, 16 to 256 bytes (default: a new one, shown once)")), update: webhook, shown: []string{"secret"},
			remove: true, complete: newSecret,
			example: "  sluice webhook create --url https://example.com/hooks --event 'stream.*'",
			actions: at("/v1/webhooks",
				status("pause", "hold deliveries back", "paused"), status("resume", "send what was held back, and what comes", "active"),
				call{use: "test ID", short: "send a signed test event, and show what came back", method: http.MethodPost, path: "/v1/webhooks/{0}/test",
					one: []string{"webhook_id", "test_event.event", "delivery.status", "delivery.response_time_ms", "delivery.success"}},
				call{use: "rotate-secret ID", short: "replace the secret; both sign until the overlap ends", method: http.MethodPost, path: "/v1/webhooks/{0}/rotate-secret", one: []string{"id", "secret"},
					flags: []option{text("secret", "secret", "new secret (default: a new one, shown once)"), {name: "overlap", fallback: 24 * time.Hour, help: "how long the former secret signs too, at most 168h"}},
					edit:  overlap},
				call{use: "deliveries ID", short: "list deliveries, newest first", path: "/v1/webhooks/{0}/deliveries", list: deliveries, wide: []string{"event_id", "error_code"},
					flags: []option{{name: "limit", fallback: 50, help: "number to list, at most 100", field: "limit"}, text("status", "status", "only those of this status", "pending", "held", "succeeded", "failed"),
						{name: "event", fallback: "", help: "only those of this event", field: "event", given: true, from: eventNames}, text("cursor", "cursor", "next_cursor of the page before")}},
				call{use: "delivery ID DELIVERY", short: "show a delivery with its attempts", path: "/v1/webhooks/{0}/deliveries/{1}", one: append(deliveries[:len(deliveries):len(deliveries)], "body", "attempt_log")},
				call{use: "resend ID DELIVERY", short: "send a delivery again, at once", method: http.MethodPost, path: "/v1/webhooks/{0}/deliveries/{1}/resend", one: deliveries},
				call{use: "recover ID", short: "send again all that failed since a time", method: http.MethodPost, path: "/v1/webhooks/{0}/recover", one: []string{"id", "status", "since", "until", "total"},
					flags: []option{must(text("since", "since", "time, RFC 3339")), text("until", "until", "time, RFC 3339 (default: now)"),
						yes("include-missed", "include_missed", "events too that made no delivery, as there was no active subscription")}},
				call{use: "events", short: "list the events that there are", path: "/v1/webhooks/event-types", list: []string{"name", "description"}},
			),
		}, {
			use: "schedule", name: "schedule", plural: "schedules", gateway: true, path: "/v1/events/schedules",
			list: []string{"id", "name", "type", "status", "nextExecution"}, wide: []string{"lastExecution", "lastExecutionStatus", "executionCount", "createdAt"},
			listOnly: []string{"nextExecution"},
			one:      []string{"schedule.cron", "schedule.timezone", "schedule.executeAt", "schedule.nextExecution", "description", "action", "webhook", "retryPolicy", "catchUpPolicy", "overlapPolicy", "tags"},
			filters: []option{text("status", "status", "only those of this status", "active", "paused", "completed"), text("type", "type", "only those of this type", "stream_start", "webhook", "custom"),
				text("tag", "tag", "only those with this tag")},
			create: schedule, update: schedule, remove: true, complete: timing,
			example: "  sluice schedule create --name nightly --type webhook --cron '0 3 * * *' --timezone Europe/Berlin --url https://example.com/hook\n  sluice schedule create -f schedule.yaml",
			actions: at("/v1/events/schedules",
				status("pause", "run it no more", "paused"), status("resume", "run it again", "active"),
				call{use: "run ID", short: "run a schedule now", method: http.MethodPost, path: "/v1/events/schedules/{0}/trigger", one: []string{"executionId", "id", "status", "message"}},
				call{use: "executions ID", short: "list what came of a schedule, newest first", path: "/v1/events/schedules/{0}/executions", paged: true,
					list: []string{"executionId", "status", "executedAt", "duration", "result.message"}, wide: []string{"scheduledFor", "attempts", "logs"},
					flags: []option{text("status", "status", "only those of this status", "success", "failed", "skipped", "executing", "waiting")}},
			),
		}, {
			use: "event", name: "event", plural: "what happened to the account", gateway: true, path: "/v1/events", cursor: true,
			list: []string{"id", "type", "created_at", "stream_id", "error_code"}, wide: []string{"data"},
			filters: []option{{name: "type", fallback: "", help: "only this event, or a group such as stream.*; error: those with an error code", field: "type", given: true, from: eventNames},
				text("since", "since", "only those from this time on, RFC 3339")},
		}, {
			use: "user", name: "person", plural: "the people of the account", gateway: true, path: "/v1/users",
			list: []string{"id", "email", "role", "status", "created_at"}, remove: true,
			update: []option{must(text("role", "role", "new role", role...))},
			actions: []call{{
				use: "invite EMAIL", short: "invite a person; the token is shown once", args: cobra.ExactArgs(1), method: http.MethodPost, path: "/v1/users",
				flags: []option{{name: "role", fallback: "member", help: "role of the person", field: "role", values: role}}, one: []string{"id", "email", "role", "status", "invitation_token", "invitation_expires_at"},
				edit: func(_ *cobra.Command, args []string, r *request) error {
					r.body["email"] = args[0]
					return nil
				},
			}},
		}, {
			use: "stream", name: "live stream", plural: "live streams", gateway: true, path: "/v1/streams",
			list: []string{"id", "title", "status", "protocol", "created_at"}, wide: []string{"playback_policy", "updated_at"},
			one:     []string{"playback_id", "ingest", "playback", "recording", "settings", "viewer_threshold", "metadata"},
			filters: []option{text("status", "status", "only those of this status")}, remove: true,
			create: append([]option{must(stream[0]), text("protocol", "protocol", "how it is published, such as rtmp")}, stream[1:]...), update: stream,
			example: "  sluice stream create --title 'Morning show' --protocol rtmp",
			actions: []call{
				act("start"), act("stop"), act("pause"), act("resume"),
				{use: "rotate-key ID", short: "replace the stream key, which is shown once", method: http.MethodPost, path: "/v1/streams/{0}/key", one: []string{"id", "title", "ingest"}},
			},
		}, {
			use: "invoice", name: "invoice", plural: "invoices of an account", path: "/admin/v1/accounts/{account}/invoices",
			list: []string{"id", "number", "status", "amount", "currency", "issued_at", "due_at"}, wide: []string{"period_start", "period_end"},
			filters: []option{text("status", "status", "only those of this status", "open", "paid", "void")},
			actions: []call{{use: "set-status ID STATUS", short: "say that an invoice is open, paid or void", method: http.MethodPatch, path: "/admin/v1/invoices/{0}",
				edit: func(_ *cobra.Command, args []string, r *request) error {
					r.body["status"] = args[1]
					return nil
				}}},
		},
	}
}

// resourceCommands are the commands of resources, and those that only read.
func resourceCommands(env app.Environment) []*cobra.Command {
	var list []*cobra.Command
	for _, r := range resources() {
		list = append(list, r.command(env))
	}
	const usage = "/v1/billing/usage"
	from, to := text("from", "from", "first date, or time of a series"), text("to", "to", "last date, or end of a series")
	return append(list,
		group("usage", "show what the account used",
			call{
				use: "report", short: "show the sums of a period, and of the month so far", gateway: true, path: usage, flags: []option{from, to},
				one: []string{"period.start", "period.end", "plan", "requests.requests", "requests.refused", "requests.bytes_in", "requests.bytes_out", "month_to_date.requests", "month_to_date.limit=none", "tokens"},
			}.command(env),
			call{
				use: "series", short: "list requests by span of time and group", gateway: true, path: usage, paged: true, example: "  sluice usage series --granularity hour --group-by product,status",
				list: []string{"start", "product", "route", "key_id", "status", "requests", "refused"}, wide: []string{"bytes_in", "bytes_out", "latency_ms"},
				flags: []option{from, to, {name: "granularity", fallback: "day", help: "span of an entry", field: "granularity", values: []string{"minute", "hour", "day"}},
					text("group-by", "group_by", "product, route, key and status, joined by commas")},
			}.command(env),
		),
		call{
			use: "audit", short: "list who changed what, newest first", path: "/admin/v1/audit", paged: true, list: []string{"at", "actor", "action", "target", "account"},
			wide:    []string{"address", "request_id", "before", "after"},
			example: "  sluice audit --action key.revoke -o wide",
			flags: []option{{name: "account", fallback: "", help: "only changes of this account (default: of all)", field: "account", given: true, from: accountIDs},
				text("actor", "actor", "only changes by this key, user or session"), text("action", "action", "only this action, such as key.create"), text("target", "target", "only changes of this object")},
		}.command(env),
	)
}

// newSecret gives a subscription a secret if it was given none.
func newSecret(_ *cobra.Command, _ []string, r *request) error {
	if r.body["secret"] == nil {
		var b [24]byte
		_, _ = rand.Read(b[:]) // never fails
		r.body["secret"] = "whsec_" + base64.StdEncoding.EncodeToString(b[:])
	}
	return nil
}

// overlap completes a rotation.
func overlap(c *cobra.Command, args []string, r *request) error {
	d, err := c.Flags().GetDuration("overlap")
	r.body["overlap_seconds"] = int(d / time.Second)
	return errors.Join(err, newSecret(c, args, r))
}

// timing says of a schedule whether it runs again and again, or once.
func timing(_ *cobra.Command, _ []string, r *request) error {
	s, _ := r.body["schedule"].(map[string]any)
	switch {
	case s == nil || s["type"] != nil:
	case s["cron"] != nil:
		s["type"] = "recurring"
	case s["executeAt"] != nil:
		s["type"] = "one_time"
	}
	return nil
}
