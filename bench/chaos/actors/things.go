package actors

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
)

// create makes a thing of the API, and notes it under its kind and name.
func (w *World) create(ctx context.Context, kind, name, path, key string, body any) (a answer, id string) {
	a, _ = w.insist(ctx, path, request{method: http.MethodPost, key: key, body: body, repeat: rand.Text()})
	var made struct{ ID string }
	if a.ok() && a.into(&made) != nil {
		made.ID = "unreadable"
	}
	w.note(func(s *audit.Seen) { s.Writes = append(s.Writes, audit.Write{Kind: kind, Name: name, ID: made.ID}) })
	return a, made.ID
}

// remove deletes it again. A repetition that finds nothing says that an earlier
// try took effect.
func (w *World) remove(ctx context.Context, kind, name, path, key string) bool {
	w.change(kind, name, func(x *audit.Write) { x.Delete = true })
	a, unsure := w.insist(ctx, path, request{method: http.MethodDelete, key: key})
	gone := a.ok() || unsure && a.status == http.StatusNotFound
	if gone {
		w.change(kind, name, func(x *audit.Write) { x.Deleted = true })
	}
	return gone
}

func (w *World) change(kind, name string, f func(*audit.Write)) {
	w.note(func(s *audit.Seen) {
		for i := range s.Writes {
			if s.Writes[i].Kind == kind && s.Writes[i].Name == name {
				f(&s.Writes[i])
			}
		}
	})
}

// stream makes a stream, and deletes every second one.
func (w *World) stream(ctx context.Context) {
	name := w.name("stream")
	_, id := w.create(ctx, "stream", name, "/v1/streams", w.key, map[string]any{"title": name, "protocol": "rtmp"})
	if id != "" && w.chance(0.5) {
		w.remove(ctx, "stream", name, "/v1/streams/"+id, w.key)
	}
}

// subscribe lets the receiver hear of streams. From then on nothing may be lost.
func (w *World) subscribe(ctx context.Context) bool {
	a, _ := w.create(ctx, "subscription", "the receiver", "/v1/webhooks", w.key, map[string]any{
		"url": w.Fleet.Hooks + "/hooks", "events": []string{"stream.*"}, "secret": secret, "description": "the receiver"})
	w.note(func(s *audit.Seen) { s.Since = time.Now() })
	return a.ok()
}

// once makes a schedule that calls the receiver one time, soon. Who has no answer
// before it is due has no claim.
func (w *World) once(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	due := time.Now().Add(w.between(10*time.Second, 18*time.Second)).UTC().Truncate(time.Millisecond)
	w.schedule(ctx, map[string]any{"type": "one_time", "executeAt": due.Format(time.RFC3339Nano)}, func(time.Time) time.Time { return due })
}

// minutely makes a schedule that calls the receiver every minute until the end.
func (w *World) minutely(ctx context.Context) {
	w.schedule(ctx, map[string]any{"type": "recurring", "cron": "* * * * *"}, func(made time.Time) time.Time {
		return made.Truncate(time.Minute).Add(time.Minute)
	})
}

// schedule makes one. first says when it has to run first, once it is accepted.
func (w *World) schedule(ctx context.Context, timing map[string]any, first func(made time.Time) time.Time) {
	name := w.name("schedule")
	_, id := w.create(ctx, "schedule", name, "/v1/events/schedules", w.key, map[string]any{
		"name": name, "type": "webhook", "schedule": timing, "catchUpPolicy": "all", "maxCatchUp": 100, "overlapPolicy": "allow",
		"webhook":     map[string]any{"url": w.Fleet.Hooks + "/calls", "payload": map[string]any{"eventName": name}},
		"retryPolicy": map[string]any{"maxRetries": 10, "backoffMultiplier": 1.5, "initialDelaySeconds": 1},
	})
	if id != "" {
		w.note(func(s *audit.Seen) {
			s.Schedules = append(s.Schedules, audit.Schedule{ID: id, First: first(time.Now()), Minutely: timing["type"] == "recurring"})
		})
	}
}

// Rest pauses what would go on for ever, and returns the time up to which it was
// due for sure.
func (w *World) Rest(ctx context.Context) (time.Time, error) {
	w.mu.Lock()
	list := slices.Clone(w.seen.Schedules)
	w.mu.Unlock()
	end := time.Now()
	for _, s := range list {
		if !s.Minutely {
			continue
		}
		if a, _ := w.insist(ctx, "/v1/events/schedules/"+s.ID, request{method: http.MethodPatch, key: w.key, body: map[string]any{"status": "paused"}}); !a.ok() {
			return end, fmt.Errorf("%s cannot be paused: %d %s", s.ID, a.status, a.code)
		}
	}
	return end, nil
}
