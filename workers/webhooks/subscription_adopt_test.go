package webhooks_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// as is the pool with no more privileges than a role has.
func as(t *testing.T, pool *pgxpool.Pool, r migrations.Role) *pgxpool.Pool {
	t.Helper()
	c := pool.Config()
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET ROLE "+pgx.Identifier{string(r)}.Sanitize())
		return err
	}
	limited, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limited.Close)
	return limited
}

// A subscription that is taken over is silent until somebody makes it active, has a secret of
// ours, and is made once; the media product may do that, and may read no secret.
func TestAdopt(t *testing.T) {
	t.Parallel()
	a := setup(t)
	media := *a.Service
	media.DB = as(t, a.Pool, migrations.Media)
	in := webhooks.Create{URL: "https://example.com/", Events: []string{"stream.started", "vod.ready"}}
	s, made, err := media.Adopt(t.Context(), webhooktest.Account, in)
	if err != nil || !made || s.Status != webhooks.Disabled || !strings.HasPrefix(s.Secret, "whsec_") || len(s.Secret) < 40 {
		t.Fatalf("%+v %t %v", s, made, err)
	}
	in.Events = []string{"vod.ready", "stream.started"}
	again, made, err := media.Adopt(t.Context(), webhooktest.Account, in)
	if err != nil || made || again.ID != s.ID || again.Secret != "" {
		t.Errorf("again: %+v %t %v", again, made, err)
	}
	in.Events = in.Events[:1]
	if other, made, err := media.Adopt(t.Context(), webhooktest.Account, in); err != nil || !made || other.ID == s.ID {
		t.Errorf("of other events: %+v %t %v", other, made, err)
	}
	for _, bad := range []webhooks.Create{{URL: "http://10.0.0.1/", Events: in.Events}, {URL: "https://example.com/", Events: []string{"odd"}}} {
		if _, _, err := media.Adopt(t.Context(), webhooktest.Account, bad); apierror.Code(err) != decision.InvalidRequest {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := media.DB.Exec(t.Context(), `SELECT secret FROM webhook_subscriptions`); err == nil {
		t.Error("the media product reads secrets")
	}
	a.Emit(events.Event{Type: "stream.started"})
	if jobs := a.Jobs(); len(jobs) != 0 {
		t.Errorf("%d deliveries to subscriptions that are disabled", len(jobs))
	}
	a.must(200, "PATCH", "/v1/webhooks/"+s.ID, object{"status": "active"})
	a.Emit(events.Event{Type: "stream.started"})
	if jobs := a.Jobs(); len(jobs) != 1 {
		t.Errorf("%d deliveries once it is active", len(jobs))
	}
	list, _, err := paging.Rows(audit.Read(t.Context(), a.Pool, audit.Filter{Target: s.ID}, paging.Page{Limit: 10}))
	if text, _ := json.Marshal(list); err != nil || len(list) != 2 || strings.Contains(string(text), s.Secret) {
		t.Errorf("%s %v", text, err)
	}
}
